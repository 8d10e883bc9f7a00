"""Writes preferences/: a tiny model, answers, and what TRL's trainers compute from them in fp32.

usage: make_preferences.py examples/data/kjv.txt tests/data/preferences        (torch 2.13, transformers 5.24, tokenizers 0.23, trl 1.16)

An answer continues a verse. The rejected one continues another.
"""
import json
import os
import shutil
import sys
import tempfile

import torch
from datasets import Dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import DPOConfig, DPOTrainer, KTOConfig, KTOTrainer
from trl.experimental.orpo import ORPOConfig, ORPOTrainer

STEPS, BATCH, RATE, EPSILON, BETA = 6, 4, 2e-3, 1e-4, 0.2  # a large epsilon: small gradients do not become large updates
TEMPLATE = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
            "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
DPO = {"sigmoid": {}, "smoothed": {"loss_type": ["robust"], "label_smoothing": 0.1}, "hinge": {"loss_type": ["hinge"], "beta": 0.5},
       "ipo": {"loss_type": ["ipo"]}, "likelihood": {"loss_type": ["sigmoid", "sft"], "loss_weights": [0.8, 0.3]},
       "sigmoid_norm": {"loss_type": ["sigmoid_norm"], "beta": 2.0}, "exo_pair": {"loss_type": ["exo_pair"], "label_smoothing": 0.01},
       "nca_pair": {"loss_type": ["nca_pair"]}, "bco_pair": {"loss_type": ["bco_pair"]}, "sppo_hard": {"loss_type": ["sppo_hard"], "beta": 1.0},
       "apo_zero": {"loss_type": ["apo_zero"]}, "apo_down": {"loss_type": ["apo_down"]}}

KTO = {"kto": {}, "kto weighted": {"desirable_weight": 1.5, "undesirable_weight": 0.5}, "kto without divergence": {"loss_type": "apo_zero_unpaired"}}


def pairs_of(path):
    """Pairs as texts without a prompt of their own, with prompts that end between words, and as conversations."""
    with open(path) as file:
        verses = [line.strip().split() for line in file if 80 < len(line) < 240][::97][:STEPS * BATCH + 1]
    texts, prompts, chats = [], [], []
    for number, (verse, other) in enumerate(zip(verses, verses[1:])):
        cut = len(verse) // 3 + number % 4
        prompt, chosen, rejected = " ".join(verse[:cut]), " ".join(verse[cut:]), " ".join(other[cut - number % 3:])
        texts.append({"chosen": f"{prompt} {chosen}", "rejected": f"{prompt} {rejected}"})
        prompts.append({"prompt": prompt, "chosen": " " + chosen, "rejected": " " + rejected})
        asked = [{"role": "system", "content": "Continue."}] * (number % 3 == 0) + [{"role": "user", "content": prompt}]
        chats.append({"prompt": asked, "chosen": [{"role": "assistant", "content": chosen}], "rejected": [{"role": "assistant", "content": rejected}]})
    return texts, prompts, chats


def judged(prompts):
    """Of each pair one answer."""
    answers = []
    for number, text in enumerate(prompts):
        liked = number % 3 != 1
        answer = "chosen" if liked else "rejected"
        answers.append({"prompt": text["prompt"], "completion": text[answer], "label": liked})
    return answers


def model_in(folder, texts):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokenizer.train_from_iterator((t["chosen"] for t in texts), trainers.BpeTrainer(
        vocab_size=400, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=TEMPLATE)
    fast.save_pretrained(folder)
    torch.manual_seed(1)
    config = LlamaConfig(vocab_size=len(fast), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                         max_position_embeddings=512, initializer_range=0.3, bos_token_id=None, eos_token_id=fast.eos_token_id,
                         pad_token_id=fast.pad_token_id, tie_word_embeddings=False)
    LlamaForCausalLM(config).save_pretrained(folder)
    return fast


def losses_of(trainer_class, arguments, folder, tokenizer, pairs):
    losses = []

    class Recorder(trainer_class):
        def compute_loss(self, *given, **named):
            result = super().compute_loss(*given, **named)
            losses.append(float(result[0] if isinstance(result, tuple) else result))
            return result

    model = LlamaForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32)
    with tempfile.TemporaryDirectory() as work:
        arguments = arguments(work)
        trainer = Recorder(model=model, args=arguments, train_dataset=Dataset.from_list(pairs), processing_class=tokenizer)
        trainer.train()
        figures = [{name: entry[name] for name in entry if name.startswith(("rewards/", "logps/")) or name in ("grad_norm", "kl")}
                   for entry in trainer.state.log_history if "grad_norm" in entry]
    return {"losses": losses, "figures": figures}


def common(work, **more):
    return dict(output_dir=work, max_steps=STEPS, per_device_train_batch_size=BATCH, learning_rate=RATE, adam_epsilon=EPSILON, lr_scheduler_type="constant", weight_decay=0.0,
                max_grad_norm=1.0, logging_steps=1, report_to=[], use_cpu=True, bf16=False, fp16=False, seed=0, save_strategy="no",
                gradient_checkpointing=False, max_length=512, dataloader_pin_memory=False, **more)


def main():
    source, out = sys.argv[1:]
    texts, prompts, chats = pairs_of(source)
    model = os.path.join(out, "model")
    os.makedirs(model, exist_ok=True)
    tokenizer = model_in(model, texts)
    expected = {}
    for kind, pairs in (("texts", texts), ("prompts", prompts), ("chats", chats)):
        with open(os.path.join(out, f"{kind}.jsonl"), "w") as file:
            file.writelines(json.dumps(pair, ensure_ascii=False) + "\n" for pair in pairs)
        for name, settings in DPO.items():
            if kind != "texts" and name not in ("sigmoid", "likelihood"):
                continue
            settings = {"beta": BETA, **settings}
            arguments = lambda work: DPOConfig(**common(work, train_sampling_strategy="sequential", disable_dropout=True), **settings)
            expected[f"{kind} {name}"] = {"method": "dpo", **settings, **losses_of(DPOTrainer, arguments, model, tokenizer, pairs)}
        if kind != "prompts":  # TRL's ORPO adds a second end of turn to chats, and begins an answer inside a word elsewhere
            continue
        arguments = lambda work: ORPOConfig(**common(work), beta=BETA)

        class InOrder(ORPOTrainer):
            def _get_train_sampler(self, *given):
                return torch.utils.data.SequentialSampler(self.train_dataset)

        expected[f"{kind} orpo"] = {"method": "orpo", "beta": BETA, **losses_of(InOrder, arguments, model, tokenizer, pairs)}
    answers = judged(prompts)
    with open(os.path.join(out, "judged.jsonl"), "w") as file:
        file.writelines(json.dumps(answer, ensure_ascii=False) + "\n" for answer in answers)
    for name, settings in KTO.items():
        arguments = lambda work: KTOConfig(**common(work, train_sampling_strategy="sequential", disable_dropout=True), beta=BETA, **settings)
        keys = {("divergence" if key == "loss_type" else key): (False if key == "loss_type" else value) for key, value in settings.items()}
        expected["judged " + name] = {"method": "kto", "beta": BETA, **keys, **losses_of(KTOTrainer, arguments, model, tokenizer, answers)}
    with open(os.path.join(out, "trl.json"), "w") as file:
        json.dump({"steps": STEPS, "batch": BATCH, "lr": RATE, "eps": EPSILON, "cases": expected}, file, indent=1)


main()
