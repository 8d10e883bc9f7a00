"""Makes optimizers.safetensors: tensors before the first step (p0.NAME), twelve gradients of each (gSTEP.NAME), and what optimizers make of
them after some of the steps (OPTIMIZER.STEP.NAME). optimizers.json has their settings, and is made too. zero's tests use AdamW's.

usage: python make_optimizers.py tests/data        (torch 2.13, prodigyopt 1.1, lion-pytorch 0.2)
"""
import json
import os
import sys

import torch
from lion_pytorch import Lion
from prodigyopt import Prodigy
from safetensors.torch import save_file

SHAPES = {"A": (7, 5), "B": (13,), "C": (33, 9)}
STEPS, SHOWN = 12, (0, 4, 11)
PRODIGY = {"lr": 1.0, "betas": (0.9, 0.99), "beta3": None, "weight_decay": 0.01, "d0": 1e-6, "d_coef": 1.0}
OPTIMIZERS = {
    "adamw": (torch.optim.AdamW, {"lr": 1e-2, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1}),
    "sgd": (torch.optim.SGD, {"lr": 1e-2, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    "lion": (Lion, {"lr": 1e-3, "betas": (0.9, 0.99), "weight_decay": 0.1}),
    "adafactor": (torch.optim.Adafactor, {"lr": 1e-2, "weight_decay": 0.1}),
    "prodigy": (Prodigy, PRODIGY | {"use_bias_correction": False, "safeguard_warmup": False}),
    "prodigy_safeguard": (Prodigy, PRODIGY | {"use_bias_correction": True, "safeguard_warmup": True}),
    "muon": (torch.optim.Muon, {"lr": 2e-2, "momentum": 0.95, "nesterov": True, "weight_decay": 0.1, "ns_steps": 5}),  # of matrices alone
}

random = torch.Generator().manual_seed(7)
start = {name: torch.randn(shape, generator=random) for name, shape in SHAPES.items()}
gradients = [{name: torch.randn(shape, generator=random) * 0.1 + 0.05 for name, shape in SHAPES.items()} for _ in range(STEPS)]
tensors = {f"p0.{name}": value for name, value in start.items()}
tensors |= {f"g{step}.{name}": value for step, of_step in enumerate(gradients) for name, value in of_step.items()}
for kind, (make, settings) in OPTIMIZERS.items():
    weights = {name: torch.nn.Parameter(value.clone()) for name, value in start.items() if kind != "muon" or value.dim() == 2}
    optimizer = make(list(weights.values()), **settings)
    for step, of_step in enumerate(gradients):
        for name, weight in weights.items():
            weight.grad = of_step[name].clone()
        optimizer.step()
        if step in SHOWN:
            tensors |= {f"{kind}.{step}.{name}": weight.detach().clone() for name, weight in weights.items()}
save_file(tensors, os.path.join(sys.argv[1], "optimizers.safetensors"))
with open(os.path.join(sys.argv[1], "optimizers.json"), "w") as file:
    json.dump({kind: settings for kind, (_, settings) in OPTIMIZERS.items()}, file, indent=1)
