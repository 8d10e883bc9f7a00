"""Makes the golden cases: a small Llama, or a model of the family that the case names as "model_type", trained for some steps by transformers, PEFT and torch, and what they found. A case's folder begins
as its case.json, which names the seed, the model's config, the optimizer's settings and, for an adapter, PEFT's. The rest is made:

  model/              config.json and weights, as save_pretrained writes them (save_dtype, max_shard_size)
  adapter/            the adapter, as PEFT writes it, where the case has "lora"
  tokens.bin          ids as little-endian uint16; window w is ids [w seq, w seq + seq], a step takes the next `batch` windows
  expect.safetensors  logits and loss of the first batch before any step, grad.NAME of that loss, step.loss, step.grad_norm (L2, before
                      clipping) and step.lr of every step, final.NAME after the last; merged.logits of the first batch with the trained
                      adapter merged into the model

The numbers are those of fp64 from fp32 weights, so that they are the same on every processor; all but step.* are stored as fp32. The loss is the mean over the batch's tokens; AdamW decays tensors of two or more dimensions.

usage: python make_golden.py tests/data/tiny... tests/data/families/*        (torch 2.13, transformers 5.23, peft 0.21)
"""
import contextlib
import json
import math
import os
import shutil
import sys

import numpy as np
import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM


def learning_rate(case, step):
    """A linear warm-up, then half a cosine from lr, which comes to lr * min_lr_ratio with the step behind the last."""
    if step < case["warmup_steps"]:
        return case["lr"] * (step + 1) / case["warmup_steps"]
    part = (step - case["warmup_steps"]) / max(1, case["steps"] - case["warmup_steps"])
    return case["lr"] * (case["min_lr_ratio"] + (1 - case["min_lr_ratio"]) * 0.5 * (1 + math.cos(math.pi * part)))


def make_model(case, folder):
    """Random weights, larger than a start's, so that every term of the model shows in its logits; as they are read back."""
    torch.manual_seed(case["seed"])
    config = AutoConfig.for_model(case.get("model_type", "llama"), **case["config"])
    config._attn_implementation = "eager"
    model = AutoModelForCausalLM.from_config(config).float()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = torch.randn_like(weight)
            middle = 0 if name.endswith("bias") else 1
            weight.copy_(middle + 0.2 * noise if weight.dim() == 1 else noise * case.get("init_std", 0.08))
    model.to(getattr(torch, case.get("save_dtype", "float32")))
    model.save_pretrained(folder, max_shard_size=case.get("max_shard_size", "5GB"))
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").train()


def add_adapter(case, model, folder):
    """Both halves of the adapter random: a B of zeros would hide A."""
    model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **case["lora"]))
    config = model.peft_config["default"]
    config.target_modules = sorted(config.target_modules)  # a set, whose order is another in every process
    random = torch.Generator().manual_seed(case["seed"] + 1)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_" in name:
                weight.copy_(torch.randn(weight.shape, generator=random) * 0.1)
    model.save_pretrained(folder)
    os.remove(os.path.join(folder, "README.md"))
    return model


def make_tokens(case):
    """Ids with three successors each, which is soon learnt."""
    count = case["seq"] * case["batch"] * case["steps"] + 1
    steps = np.random.default_rng(case["seed"]).integers(1, 4, count) * 7
    return (np.cumsum(steps) % 61 + case["config"]["vocab_size"] - 61).astype("<u2")


def train(case, model, windows):
    trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    groups = [{"params": [w for w in trained.values() if (w.dim() >= 2) == decays], "weight_decay": case["weight_decay"] * decays}
              for decays in (True, False)]
    adamw = torch.optim.AdamW(groups, lr=case["lr"], betas=case["betas"], eps=case["eps"])
    expect, steps = {}, {"step.loss": [], "step.grad_norm": [], "step.lr": []}
    for step in range(case["steps"]):
        batch = windows[step * case["batch"]:][:case["batch"]]
        logits = model(input_ids=batch[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        model.zero_grad()
        loss.backward()
        if step == 0:
            expect = {"logits": logits.detach().clone(), "loss": loss.detach().clone()}
            expect |= {"grad." + name: weight.grad.clone() for name, weight in trained.items()}
        steps["step.loss"].append(loss.item())
        steps["step.grad_norm"].append(torch.nn.utils.clip_grad_norm_(trained.values(), case["clip_grad_norm"]).item())
        steps["step.lr"].append(learning_rate(case, step))
        for group in adamw.param_groups:
            group["lr"] = steps["step.lr"][-1]
        adamw.step()
    expect |= {name: torch.tensor(values, dtype=torch.float64) for name, values in steps.items()}
    return expect | {"final." + name: weight.detach().clone() for name, weight in trained.items()}


@contextlib.contextmanager
def nothing_in_fp32():
    """Norms, softmax and rotation name fp32 in transformers' source: here they get fp64."""
    single, to_single = torch.float32, torch.Tensor.float
    torch.float32, torch.Tensor.float = torch.float64, torch.Tensor.double
    try:
        yield
    finally:
        torch.float32, torch.Tensor.float = single, to_single


def make(folder):
    with open(os.path.join(folder, "case.json")) as file:
        case = json.load(file)
    for part in ("model", "adapter"):
        shutil.rmtree(os.path.join(folder, part), ignore_errors=True)
    model = make_model(case, os.path.join(folder, "model"))
    if "lora" in case:
        model = add_adapter(case, model, os.path.join(folder, "adapter"))
    model.double()
    tokens = make_tokens(case)
    tokens.tofile(os.path.join(folder, "tokens.bin"))
    ids = torch.from_numpy(tokens.astype(np.int64))
    windows = ids.unfold(0, case["seq"] + 1, case["seq"])
    with nothing_in_fp32():
        expect = train(case, model, windows)
        if "lora" in case:
            expect["merged.logits"] = model.merge_and_unload()(input_ids=windows[:case["batch"], :-1]).logits.detach().clone()
    expect = {name: value if name.startswith("step.") else value.float() for name, value in expect.items()}
    save_file({name: tensor.contiguous() for name, tensor in expect.items()}, os.path.join(folder, "expect.safetensors"))
    print(folder, "losses", expect["step.loss"].tolist())


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for name in sys.argv[1:]:
        make(name)
