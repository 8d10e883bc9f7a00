#!/usr/bin/env python3
"""How far bf16 moves the loss of a model in transformers: fp32, and bf16 with each of its two attention paths, on the same answers.

usage: bf16_spread.py MODEL GSM8K_TRAIN_JSONL [--batches 2] [--rows 16]        needs torch and transformers
MODEL: a folder of a chat model. Prints a row for each batch of questions and answers; the loss is that of the answers.
"""
import argparse
import json

import torch
from torch.nn.functional import cross_entropy
from transformers import AutoModelForCausalLM, AutoTokenizer


def conversations(tokenizer, path, count):
    """Pairs (ids of the conversation, ids of its prompt)."""
    with open(path) as file:
        for _, line in zip(range(count), file):
            row = json.loads(line)
            turns = [{"role": "user", "content": row["question"]}, {"role": "assistant", "content": row["answer"]}]
            yield (tokenizer.apply_chat_template(turns, return_dict=False),
                   tokenizer.apply_chat_template(turns[:1], add_generation_prompt=True, return_dict=False))


@torch.no_grad()
def mean_loss(model, batch):
    total, tokens = 0.0, 0
    for ids, prompt in batch:
        logits = model(torch.tensor([ids])).logits[0, len(prompt) - 1:-1].float()
        total += cross_entropy(logits, torch.tensor(ids[len(prompt):]), reduction="sum").item()
        tokens += len(ids) - len(prompt)
    return total / tokens


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--batches", type=int, default=2)
    parser.add_argument("--rows", type=int, default=16)
    args = parser.parse_args()
    rows = list(conversations(AutoTokenizer.from_pretrained(args.model), args.data, args.batches * args.rows))
    batches = [rows[begin:begin + args.rows] for begin in range(0, len(rows), args.rows)]
    losses = []
    for kind, attention in ((torch.float32, "sdpa"), (torch.bfloat16, "sdpa"), (torch.bfloat16, "eager")):
        model = AutoModelForCausalLM.from_pretrained(args.model, dtype=kind, attn_implementation=attention).eval()
        losses.append([mean_loss(model, batch) for batch in batches])
    print("| batch | fp32 | bf16, sdpa | bf16, eager | the two differ by |\n|---|---|---|---|---|")
    for number, (exact, sdpa, eager) in enumerate(zip(*losses)):
        print(f"| {number + 1} | {exact:.5f} | {sdpa:.5f} | {eager:.5f} | {abs(sdpa - eager):.5f} |")


if __name__ == "__main__":
    main()
