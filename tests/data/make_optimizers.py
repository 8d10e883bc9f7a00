"""Makes optimizers.safetensors: tensors before the first step (p0.NAME), twelve gradients of each (gSTEP.NAME), and their values after some of
the steps of published optimizers (OPTIMIZER.STEP.NAME). optimizers.json has the optimizers' settings, and is made too.

Gradients are multiples of 1/256 up to 1/2: fp32, bf16 and fp16 hold them exactly.

usage: python make_optimizers.py tests/data        (torch 2.13, prodigyopt 1.1, lion-pytorch 0.2, bitsandbytes 0.50)
"""
import json
import os
import sys

import torch
from bitsandbytes.backends.cpu import ops as bitsandbytes_cpu
from bitsandbytes.optim import AdamW8bit
from lion_pytorch import Lion
from prodigyopt import Prodigy
from safetensors.torch import save_file

SHAPES = {"A": (7, 5), "B": (13,), "C": (33, 9), "scalar": (), "one": (1,), "vector": (5,), "matrix": (3, 4), "cube": (2, 3, 4),
          "kernel": (5, 3, 3, 3), "large": (70, 65)}
STEPS, SHOWN = 12, (0, 4, 11)
SMALL = [name for name in SHAPES if name != "large"]
PRODIGY = {"lr": 1.0, "betas": (0.9, 0.99), "beta3": None, "weight_decay": 0.01, "d0": 1e-6, "d_coef": 1.0}
# Which, with which settings, and on which tensors.
OPTIMIZERS = {
    "adamw": (torch.optim.AdamW, {"lr": 1e-2, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1}, SMALL),
    "adamw8bit": (AdamW8bit, {"lr": 1e-2, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1}, ["large"]),
    "sgd": (torch.optim.SGD, {"lr": 1e-2, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}, SMALL),
    "lion": (Lion, {"lr": 1e-3, "betas": (0.9, 0.99), "weight_decay": 0.1}, SMALL),
    "adafactor": (torch.optim.Adafactor, {"lr": 1e-2, "weight_decay": 0.1}, SMALL),
    "prodigy": (Prodigy, PRODIGY | {"use_bias_correction": False, "safeguard_warmup": False}, SMALL),
    "prodigy_safeguard": (Prodigy, PRODIGY | {"use_bias_correction": True, "safeguard_warmup": True}, SMALL),
    "muon": (torch.optim.Muon, {"lr": 2e-2, "momentum": 0.95, "nesterov": True, "weight_decay": 0.1, "ns_steps": 5}, ["A", "C", "matrix"]),
}



def quantize_to_nearest(values, codes, scales, out, block):
    """bitsandbytes' kernel of the CPU misses the nearest code at times (of 0 it makes 2e-5); those of its GPUs search for it."""
    rows = torch.nn.functional.pad(values.flatten(), (0, -values.numel() % block)).view(-1, block)
    scales.copy_(rows.abs().amax(1))
    found = torch.bucketize(rows / scales.unsqueeze(1).clamp(min=1e-38), (codes[1:] + codes[:-1]) / 2)
    out.copy_(found.flatten()[: values.numel()].view_as(out))


bitsandbytes_cpu._quant_blockwise_fp32_direct = quantize_to_nearest

random = torch.Generator().manual_seed(7)
start = {name: torch.randn(shape, generator=random) for name, shape in SHAPES.items()}


def gradient(shape):
    return torch.randn(shape, generator=random).mul_(25).add_(12).round_().clamp_(-128, 128).div_(256)


gradients = [{name: gradient(shape) for name, shape in SHAPES.items()} for _ in range(STEPS)]
tensors = {f"p0.{name}": value for name, value in start.items()}
tensors |= {f"g{step}.{name}": value.to(torch.bfloat16) for step, of_step in enumerate(gradients) for name, value in of_step.items()}
for kind, (make, settings, names) in OPTIMIZERS.items():
    weights = {name: torch.nn.Parameter(start[name].clone()) for name in names}
    optimizer = make(list(weights.values()), **settings)
    for step, of_step in enumerate(gradients):
        for name, weight in weights.items():
            weight.grad = of_step[name].clone()
        optimizer.step()
        if step in SHOWN:
            tensors |= {f"{kind}.{step}.{name}": weight.detach().clone() for name, weight in weights.items()}
save_file(tensors, os.path.join(sys.argv[1], "optimizers.safetensors"))
with open(os.path.join(sys.argv[1], "optimizers.json"), "w") as file:
    json.dump({kind: settings for kind, (_, settings, _) in OPTIMIZERS.items()}, file, indent=1)
