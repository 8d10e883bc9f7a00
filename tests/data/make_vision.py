"""Reference cases of the example resnet18: what PyTorch makes of a few steps of SGD on pictures.

usage: make_vision.py DIGITS CASE_DIR...
Reads CASE_DIR/case.json, takes its pictures from the folder DIGITS (files in CIFAR-10's binary format), and writes beside it:
data_batch_1.bin and test_batch.bin, the first records of DIGITS' files; model/model.safetensors, where the run starts;
expect.safetensors, fp32: logits, loss and grad.NAME of the first batch, step.loss and step.grad_norm (fp64), final.NAME with the
running statistics, and test.logits and test.loss in evaluation mode. Step s takes the batch behind that of step s - 1. Norms
start off their usual place, biases far from zero: hardly an activation then lies so near to zero that rounding decides its sign.
"""
import json
import os
import sys

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

RECORD = 3073


class BasicBlock(nn.Module):
    def __init__(self, channels_in, channels, stride, norm):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.bn1 = norm(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = norm(channels)
        self.downsample = None
        if stride != 1 or channels_in != channels:
            self.downsample = nn.Sequential(nn.Conv2d(channels_in, channels, 1, stride, bias=False), norm(channels))

    def forward(self, x):
        shortcut = self.downsample(x) if self.downsample else x
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + shortcut)


class ResNet18(nn.Module):
    def __init__(self, width, classes, norm):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, 1, 1, bias=False)
        self.bn1 = norm(width)
        channels = width
        for stage, stride in enumerate((1, 2, 2, 2), 1):
            out = width * 2 ** (stage - 1)
            self.add_module(f"layer{stage}", nn.Sequential(BasicBlock(channels, out, stride, norm), BasicBlock(out, out, 1, norm)))
            channels = out
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        for layer in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = layer(x)
        return self.fc(x.mean(dim=(2, 3)))


def model_of(case):
    if case["norm"] == "group":
        return ResNet18(case["width"], case["classes"], lambda channels: nn.GroupNorm(case["norm_groups"], channels, eps=case["norm_eps"]))
    return ResNet18(case["width"], case["classes"], lambda channels: nn.BatchNorm2d(channels, eps=case["norm_eps"], momentum=case["norm_momentum"]))


def start(model, seed):
    generator = torch.Generator().manual_seed(seed)
    normal = lambda tensor, mean, std: tensor.normal_(generator=generator).mul_(std).add_(mean)
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if tensor.dim() == 4:
                normal(tensor, 0, (2 / (tensor.shape[0] * tensor.shape[2] ** 2)) ** 0.5)
            elif name == "fc.weight":
                normal(tensor, 0, 0.5 / tensor.shape[1] ** 0.5)
            elif name.endswith("running_var"):
                normal(tensor, 0, 0.2).abs_().add_(0.6)
            elif name.endswith("num_batches_tracked"):
                tensor.fill_(5)
            elif name.endswith("weight"):
                normal(tensor, 0.7, 0.1)
            elif name.endswith("bias") and "fc" not in name:
                sign = torch.where(torch.rand(tensor.shape, generator=generator) < 0.65, 1.0, -1.0)
                normal(tensor, 0, 0.1).add_(1.4 * sign)
            else:
                normal(tensor, 0, 0.1)


def pictures_of(path, case):
    records = torch.frombuffer(bytearray(open(path, "rb").read()), dtype=torch.uint8).view(-1, RECORD)
    x = records[:, 1:].reshape(-1, 3, 32, 32).float() / 255
    mean, std = (torch.tensor(case[key]).view(3, 1, 1) for key in ("mean", "std"))
    return (x - mean) / std, records[:, 0].long()


def make(digits, folder):
    with open(os.path.join(folder, "case.json")) as file:
        case = json.load(file)
    for name, records in (("data_batch_1.bin", case["train_records"]), ("test_batch.bin", case["test_records"])):
        with open(os.path.join(digits, name), "rb") as source, open(os.path.join(folder, name), "wb") as target:
            target.write(source.read(records * RECORD))
    model = model_of(case)
    start(model, case["seed"])
    os.makedirs(os.path.join(folder, "model"), exist_ok=True)
    save_file({name: tensor.clone().contiguous() for name, tensor in model.state_dict().items()}, os.path.join(folder, "model", "model.safetensors"))

    sgd = torch.optim.SGD(model.parameters(), lr=case["lr"], momentum=case["momentum"], weight_decay=case["weight_decay"], nesterov=case["nesterov"])
    x, labels = pictures_of(os.path.join(folder, "data_batch_1.bin"), case)
    out, losses, norms = {}, [], []
    for step in range(case["steps"]):
        rows = slice(step * case["batch"], (step + 1) * case["batch"])
        sgd.zero_grad()
        logits = model(x[rows])
        loss = F.cross_entropy(logits, labels[rows])
        loss.backward()
        if step == 0:
            out.update({"logits": logits.detach().clone(), "loss": loss.detach().clone()})
            out.update({f"grad.{name}": parameter.grad.clone() for name, parameter in model.named_parameters()})
        losses.append(loss.item())
        norms.append(sum(parameter.grad.double().square().sum() for parameter in model.parameters()).sqrt().item())
        sgd.step()
    out["step.loss"], out["step.grad_norm"] = torch.tensor(losses, dtype=torch.float64), torch.tensor(norms, dtype=torch.float64)
    out.update({f"final.{name}": tensor.clone() for name, tensor in model.state_dict().items()})
    model.eval()
    with torch.no_grad():
        x, labels = pictures_of(os.path.join(folder, "test_batch.bin"), case)
        out["test.logits"] = model(x)
        out["test.loss"] = F.cross_entropy(out["test.logits"], labels)
    save_file({name: tensor.contiguous() for name, tensor in out.items()}, os.path.join(folder, "expect.safetensors"))
    print(folder, "losses", losses, "norms", norms)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for folder in sys.argv[2:]:
        make(sys.argv[1], folder)
