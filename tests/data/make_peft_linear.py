"""Makes peft_linear.safetensors: what PEFT computes around one Linear 6 -> 10 with r = 3 and lora_alpha = 5. In fp64, for rank-stabilised
LoRA, DoRA and both: input x, weight, a, b, (DoRA) start_magnitude and magnitude, output y, the gradients for dy, and the merged weight. In
fp32, for PiSSA: the weight, what is made of it (a, b, residual), and output y of x.

usage: python make_peft_linear.py tests/data        (torch 2.13, peft 0.21)
"""
import os
import sys

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file

RULES = {"rslora": {"use_rslora": True}, "dora": {"use_dora": True}, "dora_rslora": {"use_dora": True, "use_rslora": True}}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = torch.nn.Linear(6, 10, bias=False)


def adapted(model, **rule):
    return get_peft_model(model, LoraConfig(r=3, lora_alpha=5, target_modules=["proj"], **rule)).base_model.model.proj


def random(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def around_linear(rule):
    layer = adapted(Model().double(), **rule).double()
    a, b = layer.lora_A["default"].weight, layer.lora_B["default"].weight
    found, leaves = {"weight": layer.base_layer.weight}, {"a": a, "b": b}
    with torch.no_grad():
        a.copy_(random(3, 6) * 0.5)
        b.copy_(random(10, 3) * 0.5)
        if "use_dora" in rule:
            leaves["magnitude"] = layer.lora_magnitude_vector["default"].weight
            found["start_magnitude"] = leaves["magnitude"].clone()
            leaves["magnitude"].mul_(1 + 0.3 * random(10))
    leaves["x"] = random(4, 6).requires_grad_()
    found |= leaves | {"y": layer(leaves["x"]), "dy": random(4, 10)}
    gradients = torch.autograd.grad(found["y"], list(leaves.values()), found["dy"])
    found |= {"grad_" + name: gradient for name, gradient in zip(leaves, gradients)}
    found = {name: tensor.detach().clone() for name, tensor in found.items()}
    layer.merge()
    return found | {"merged": layer.base_layer.weight.detach().clone()}


def pissa():
    model = Model()
    weight = model.proj.weight.detach().clone()
    layer = adapted(model, init_lora_weights="pissa")
    x = torch.randn(4, 6)
    found = {"weight": weight, "a": layer.lora_A["default"].weight, "b": layer.lora_B["default"].weight,
             "residual": layer.base_layer.weight, "x": x, "y": layer(x)}
    return {name: tensor.detach().clone() for name, tensor in found.items()}


torch.manual_seed(5)
torch.set_num_threads(1)
tensors = {f"{name}.{part}": value for name, rule in RULES.items() for part, value in around_linear(rule).items()}
tensors |= {f"pissa.{part}": value for part, value in pissa().items()}
save_file(tensors, os.path.join(sys.argv[1], "peft_linear.safetensors"))
