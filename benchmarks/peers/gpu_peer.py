#!/usr/bin/env python3
"""A training step of PyTorch on GPUs: FSDP2, torch.compile for each block, fused AdamW, bf16 with fp32 sums. For
benchmarks/gpu_report, beside `zero_bench step --device cuda`: the same model, tokens, formulas and fields.

usage: python3 gpu_peer.py --preset tinyllama-1.1b --batch 16      (torchrun for several GPUs)
"""
import argparse
import json
import os
import statistics
import time

import torch
import torch.distributed as dist
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from transformers import LlamaConfig, LlamaForCausalLM

#                  hidden layers heads kv inter  vocab
PRESETS = {
    "llama-15m": (288, 6, 6, 6, 768, 32000),   # embedding and head tied
    "llama-110m": (768, 12, 12, 4, 2048, 32000),
    "tinyllama-1.1b": (2048, 22, 32, 4, 5632, 32000),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--preset", default="tinyllama-1.1b", choices=PRESETS)
    parser.add_argument("--config", default="", help="the config.json of a model instead")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--seq", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--peak-tflops", type=float, default=989)
    a = parser.parse_args()
    for name, value in (("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29577"), ("RANK", "0"), ("WORLD_SIZE", "1"), ("LOCAL_RANK", "0")):
        os.environ.setdefault(name, value)
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    world = dist.get_world_size()

    if a.config:
        config = LlamaConfig(**json.load(open(a.config)))
    else:
        h, layers, heads, kv, inter, vocab = PRESETS[a.preset]
        config = LlamaConfig(hidden_size=h, num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=kv, intermediate_size=inter,
                             vocab_size=vocab, max_position_embeddings=max(2048, a.seq), rms_norm_eps=1e-5,
                             tie_word_embeddings=a.preset == "llama-15m")
    config.use_cache, config._attn_implementation = False, "sdpa"
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = LlamaForCausalLM(config)
    parameters = sum(p.numel() for p in model.parameters())
    if not a.no_compile:
        for i, block in enumerate(model.model.layers):
            model.model.layers[i] = torch.compile(block)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in model.model.layers:
        fully_shard(block, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    tokens = ((torch.arange(a.batch * (a.seq + 1)) * 2654435761 + dist.get_rank()) % 509).view(a.batch, -1).cuda()
    ids, targets = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    def loss_of(logits):
        return torch.nn.functional.cross_entropy(logits.view(-1, logits.size(-1)).float(), targets.view(-1))

    if not a.no_compile:
        loss_of = torch.compile(loss_of)

    def step():
        loss = loss_of(model(input_ids=ids).logits)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    for _ in range(a.warmup):
        step()
    seconds = []
    for _ in range(max(3, a.steps // 5)):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(5):
            loss = step()
        torch.cuda.synchronize()
        seconds.append((time.perf_counter() - begin) / 5)
    median = statistics.median(seconds)
    rate = a.batch * a.seq / median
    embedding = 0 if config.tie_word_embeddings else config.vocab_size * config.hidden_size
    attention = config.num_hidden_layers * config.num_attention_heads * (config.hidden_size // config.num_attention_heads) * a.seq
    flop, causal = (6 * (parameters - embedding) + k * attention for k in (12, 6))
    if dist.get_rank() == 0:
        print(json.dumps({"version": 1, "benchmark": "device_step", "engine": "fsdp2" + ("" if a.no_compile else "+compile"), "torch": torch.__version__,
                          "model": a.preset, "dtype": "bf16", "world": world, "seq": a.seq, "batch": a.batch, "median_step_s": median,
                          "tokens_per_s_per_gpu": rate, "peak_bytes": torch.cuda.max_memory_allocated(), "mfu": flop * rate / 1e12 / a.peak_tflops,
                          "mfu_causal": causal * rate / 1e12 / a.peak_tflops, "loss": loss.item()}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
