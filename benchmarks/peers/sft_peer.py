"""Supervised fine-tuning of conversations by transformers and PEFT, for reference_gsm8k. Prints one JSON object.

usage: sft_peer.py MODEL CONVERSATIONS ADAPTER --steps N [--threads N] [--rows 2] [--batch 16] [--lr 2e-4]
                   [--precision bf16|fp32] [--state FILE] [--write]

A loop of its own, so that it trains the tokens that zero_train trains: those of the answer up to the one that ends it. The loss of
a step is the mean over its trained tokens, as transformers' Trainer computes it. Rows are padded to the longest of their
micro-batch. --state writes the state of the run to FILE every 10 steps and at its end; a second call goes on from there. --write only makes the
adapter with which both projects begin.
"""
import argparse
import json
import os
import time

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer

ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
for name in ("model", "conversations", "adapter"):
    ap.add_argument(name)
for name, default in (("steps", 3), ("threads", 1), ("rows", 2), ("batch", 16), ("length", 513)):
    ap.add_argument("--" + name, type=int, default=default)
ap.add_argument("--lr", type=float, default=2e-4)
ap.add_argument("--precision", default="bf16", choices=("bf16", "fp32"))
ap.add_argument("--state")
ap.add_argument("--write", action="store_true")
a = ap.parse_args()
torch.set_num_threads(a.threads)
base = AutoModelForCausalLM.from_pretrained(a.model, dtype=torch.bfloat16 if a.precision == "bf16" else torch.float32)
if a.write:
    torch.manual_seed(0)
    lora = LoraConfig(r=16, lora_alpha=32, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM", bias="none")
    get_peft_model(base, lora).save_pretrained(a.adapter)
    raise SystemExit
tokenizer = AutoTokenizer.from_pretrained(a.model)
model = PeftModel.from_pretrained(base, a.adapter, is_trainable=True)


def row_of(messages):
    """Ids and labels of a conversation; only the answer and its end are trained."""
    ids = tokenizer.apply_chat_template(messages, return_dict=False)
    start = len(tokenizer.apply_chat_template(messages[:-1], add_generation_prompt=True, return_dict=False))
    end = len(ids) - ids[::-1].index(tokenizer.eos_token_id)
    return ids[:a.length], ([-100] * start + ids[start:end] + [-100] * (len(ids) - end))[:a.length]


def padded(lists, value):
    longest = max(len(ids) for ids in lists)
    return torch.tensor([ids + [value] * (longest - len(ids)) for ids in lists])


with open(a.conversations) as file:
    rows = [row_of(json.loads(line)["messages"]) for _, line in zip(range(a.steps * a.batch), file)]
trained = [weight for weight in model.parameters() if weight.requires_grad]
optimizer = torch.optim.AdamW(trained, lr=a.lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0)
losses, seconds = [], []
if a.state and os.path.exists(a.state):
    losses, seconds, weights, moments = torch.load(a.state)
    for weight, kept in zip(trained, weights, strict=True):
        weight.data.copy_(kept)
    optimizer.load_state_dict(moments)


def write_state():
    torch.save((losses, seconds, [weight.data for weight in trained], optimizer.state_dict()), a.state + ".part")
    os.replace(a.state + ".part", a.state)


model.train()
for step in range(len(losses), a.steps):
    begin = time.time()
    batch = rows[step * a.batch:(step + 1) * a.batch]
    count = sum(label != -100 for _, labels in batch for label in labels[1:])
    loss = 0.0
    for at in range(0, a.batch, a.rows):
        ids, labels = zip(*batch[at:at + a.rows])
        tokens = padded(ids, 0)
        mask = padded([[1] * len(one) for one in ids], 0)
        with torch.autocast("cpu", torch.bfloat16, enabled=a.precision == "bf16"):
            logits = model(input_ids=tokens, attention_mask=mask).logits
        part = torch.nn.functional.cross_entropy(logits[:, :-1].float().flatten(0, 1), padded(labels, -100)[:, 1:].flatten(), reduction="sum") / count
        part.backward()
        loss += part.item()
    torch.nn.utils.clip_grad_norm_(trained, 1.0)
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss)
    seconds.append(time.time() - begin)
    if a.state and (len(losses) % 10 == 0 or len(losses) == a.steps):
        write_state()
print(json.dumps({"losses": losses, "step_s": seconds}))
