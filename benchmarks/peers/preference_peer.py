"""TRL's DPOTrainer, ORPOTrainer or KTOTrainer, with PEFT or on all weights, for compare_preferences. Prints one JSON object.

usage: preference_peer.py MODEL ROWS ADAPTER --method dpo|orpo|kto --steps N --pairs N --length N --threads N --lr X --eps X --beta X [--rank N]
                          [--precision bf16|fp32] [--full] [--write] [--recompute]

--write only makes the adapter with which both projects begin. Memory: VmHWM of the process, after loading and at the end.
"""
import argparse
import json
import tempfile
import time

import torch
from datasets import Dataset
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback

ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
for name in ("model", "rows", "adapter"):
    ap.add_argument(name)
for name, default in (("steps", 3), ("pairs", 1), ("length", 256), ("threads", 1), ("rank", 16)):
    ap.add_argument("--" + name, type=int, default=default)
ap.add_argument("--method", default="dpo", choices=("dpo", "orpo", "kto"))
ap.add_argument("--lr", type=float, default=5e-5)
ap.add_argument("--eps", type=float, default=1e-8)
ap.add_argument("--beta", type=float, default=0.1)
ap.add_argument("--precision", default="bf16", choices=("bf16", "fp32"))
ap.add_argument("--full", action="store_true")
ap.add_argument("--write", action="store_true")
ap.add_argument("--recompute", action="store_true")
a = ap.parse_args()
torch.set_num_threads(a.threads)


def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))


def base():
    return AutoModelForCausalLM.from_pretrained(a.model, dtype=torch.bfloat16 if a.precision == "bf16" else torch.float32)


def trainer_of():
    """The method's trainer, which takes rows in their order, and its settings."""
    if a.method == "dpo":
        from trl import DPOConfig, DPOTrainer
        return DPOTrainer, DPOConfig, {"train_sampling_strategy": "sequential", "disable_dropout": True}
    if a.method == "kto":
        from trl import KTOConfig, KTOTrainer
        return KTOTrainer, KTOConfig, {"train_sampling_strategy": "sequential", "disable_dropout": True}
    from trl.experimental.orpo import ORPOConfig, ORPOTrainer

    class InOrder(ORPOTrainer):
        def _get_train_sampler(self, *given):
            return torch.utils.data.SequentialSampler(self.train_dataset)

    return InOrder, ORPOConfig, {}


class Clock(TrainerCallback):
    def __init__(self):
        self.seconds = []

    def on_step_begin(self, *given, **named):
        self.begin = time.time()

    def on_step_end(self, *given, **named):
        self.seconds.append(time.time() - self.begin)


if a.write:
    torch.manual_seed(0)
    lora = LoraConfig(r=a.rank, lora_alpha=2 * a.rank, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM", bias="none")
    get_peft_model(base(), lora).save_pretrained(a.adapter)
    raise SystemExit
tokenizer = AutoTokenizer.from_pretrained(a.model)
if tokenizer.pad_token is None:
    tokenizer.pad_token = tokenizer.eos_token
if a.method == "orpo":
    tokenizer.bos_token = None  # ORPOTrainer alone puts it before every prompt, whatever the tokenizer does
model = base() if a.full else PeftModel.from_pretrained(base(), a.adapter, is_trainable=True)
with open(a.rows) as file:
    rows = Dataset.from_list([json.loads(line) for line in file])
clock, losses = Clock(), []
trainer_class, settings_class, more = trainer_of()


class Recorder(trainer_class):
    """Keeps each step's loss as computed; the log rounds it."""

    def compute_loss(self, *given, **named):
        result = super().compute_loss(*given, **named)
        losses.append(float(result[0] if isinstance(result, tuple) else result))
        return result


with tempfile.TemporaryDirectory() as work:
    settings = settings_class(output_dir=work, max_steps=a.steps, per_device_train_batch_size=a.pairs, learning_rate=a.lr, adam_epsilon=a.eps, beta=a.beta,
                              lr_scheduler_type="constant", weight_decay=0.0, max_grad_norm=1.0, logging_steps=1, report_to=[], use_cpu=True, bf16=a.precision == "bf16",
                              fp16=False, seed=0, save_strategy="no", max_length=a.length, gradient_checkpointing=a.recompute, dataloader_pin_memory=False, disable_tqdm=True, **more)
    trainer = Recorder(model=model, args=settings, train_dataset=rows, processing_class=tokenizer, callbacks=[clock])
    loaded = peak()
    trainer.train()
lines = [line for line in trainer.state.log_history if "grad_norm" in line]
figures = [{name: line[name] for name in line if name.startswith(("rewards/", "logps/"))} for line in lines]
print(json.dumps({"step_s": clock.seconds, "losses": losses, "figures": figures, "loaded": loaded, "peak": peak()}))
