#!/usr/bin/env python3
"""The network and schedule of cifar10-airbench (Jordan 2024, arXiv 2404.00498) in plain PyTorch on CPUs, in one process.

usage: airbench_peer.py FOLDER [--epochs 9.9] [--precision fp32|bf16] [--padding reflect|zeros]
FOLDER: cifar-10-batches-bin. It prints the share of right answers after each epoch, and with slow weights and six views at the end.
As published, crops are padded by reflection and the bias of the first layer learns for three epochs.
"""
import argparse
import contextlib
import math

import numpy
import torch
from torch import nn
from torch.nn import functional as F

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


def pictures_of(folder, names):
    records = numpy.concatenate([numpy.fromfile(f"{folder}/{name}", dtype="uint8").reshape(-1, 3073) for name in names])
    pixels = torch.from_numpy(records[:, 1:].reshape(-1, 3, 32, 32)).float() / 255
    scaled = (pixels - torch.tensor(MEAN).view(1, 3, 1, 1)) / torch.tensor(STD).view(1, 3, 1, 1)
    return scaled, torch.from_numpy(records[:, 0].astype("int64"))


def convolution(channels_in, channels_out):
    made = nn.Conv2d(channels_in, channels_out, 3, padding=1, bias=False)
    nn.init.dirac_(made.weight.data[:channels_in])
    return made


def norm(channels):
    made = nn.BatchNorm2d(channels, eps=1e-12, momentum=0.4)
    made.weight.requires_grad = False
    return made


def group(channels_in, channels_out):
    return [convolution(channels_in, channels_out), nn.MaxPool2d(2), norm(channels_out), nn.GELU(),
            convolution(channels_out, channels_out), norm(channels_out), nn.GELU()]


def network(first):
    whiten = nn.Conv2d(3, 24, 2)
    patches = first.unfold(2, 2, 1).unfold(3, 2, 1).permute(0, 2, 3, 1, 4, 5).reshape(-1, 12).double()
    variances, directions = torch.linalg.eigh(patches.T @ patches / len(patches))
    filters = (directions / (variances + 5e-4).sqrt()).T.reshape(12, 3, 2, 2).float()
    whiten.weight.data.copy_(torch.cat([filters, -filters]))
    whiten.weight.requires_grad = False
    whiten.bias.data.zero_()
    return nn.Sequential(whiten, nn.GELU(), *group(24, 64), *group(64, 256), *group(256, 256), nn.MaxPool2d(3),
                         nn.Flatten(), nn.Linear(256, 10, bias=False))


def crops(pictures, padding):
    wide = F.pad(pictures, (2,) * 4, mode="reflect" if padding == "reflect" else "constant")
    moved = torch.randint(5, (len(pictures), 2))
    cut = torch.empty_like(pictures)
    for down in range(5):
        for right in range(5):
            rows = ((moved[:, 0] == down) & (moved[:, 1] == right)).nonzero()[:, 0]
            cut[rows] = wide[rows, :, down:down + 32, right:right + 32]
    return cut


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--epochs", type=float, default=9.9)
    parser.add_argument("--precision", default="fp32", choices=("fp32", "bf16"))
    parser.add_argument("--padding", default="reflect", choices=("reflect", "zeros"))
    args = parser.parse_args()
    torch.manual_seed(1)
    pictures, labels = pictures_of(args.folder, [f"data_batch_{i}.bin" for i in range(1, 6)])
    unseen, answers = pictures_of(args.folder, ["test_batch.bin"])
    model = network(pictures[:5000])
    context = (lambda: torch.autocast("cpu", torch.bfloat16)) if args.precision == "bf16" else contextlib.nullcontext
    batch, momentum = 1024, 0.85
    rate, decay = 11.5 / (1 + 1 / (1 - momentum)), 0.0153 / 11.5
    biases = [m.bias for m in model if isinstance(m, nn.BatchNorm2d)]
    others = [p for p in model.parameters() if p.requires_grad and not any(p is b for b in biases)]
    optimizer = torch.optim.SGD([{"params": biases, "lr": rate * 64, "weight_decay": decay / 64},
                                 {"params": others, "lr": rate, "weight_decay": decay}], momentum=momentum, nesterov=True)
    full = [g["lr"] for g in optimizer.param_groups]
    per_epoch = len(pictures) // batch
    steps = math.ceil(per_epoch * args.epochs)
    slow = {name: value.clone() for name, value in model.state_dict().items() if value.is_floating_point()}

    def average(keep):
        for name, value in model.state_dict().items():
            if name in slow:
                slow[name].lerp_(value, 1 - keep)
                value.copy_(slow[name])

    @torch.no_grad()
    def accuracy(views):
        model.eval()

        def logits(x):
            with context():
                return model(x).float()
        def both(x):
            return logits(x) + logits(x.flip(3))
        right = 0
        for begin in range(0, len(unseen), 1000):
            x = unseen[begin:begin + 1000]
            found = logits(x)
            if views:
                wide = F.pad(x, (1,) * 4, mode="reflect")
                found = 0.5 * both(x) + 0.25 * (both(wide[:, :, :32, :32]) + both(wide[:, :, 2:, 2:]))
            right += int((found.argmax(1) == answers[begin:begin + 1000]).sum())
        model.train()
        return 100 * right / len(unseen)

    turned = torch.rand(len(pictures)) < 0.5
    step = 0
    for epoch in range(math.ceil(args.epochs)):
        model[0].bias.requires_grad = epoch < 3
        order = torch.randperm(len(pictures))
        total = 0.0
        for begin in range(0, per_epoch * batch, batch):
            if step == steps:
                break
            rows = order[begin:begin + batch]
            x = pictures[rows]
            flips = (turned[rows] ^ bool(epoch % 2)).view(-1, 1, 1, 1)
            x = crops(torch.where(flips, x.flip(3), x), args.padding)
            done = step / steps
            share = 0.2 + 0.8 * done / 0.23 if done < 0.23 else 1 - 0.93 * (done - 0.23) / 0.77
            for g, most in zip(optimizer.param_groups, full):
                g["lr"] = most * share
            with context():
                scores = model(x)
            loss = F.cross_entropy(scores.float() / 9, labels[rows], label_smoothing=0.2)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            step += 1
            total += loss.item()
            if step % 5 == 0:
                average(0.95**5 * (step / steps)**3)
        print(f"epoch {epoch + 1:2d}  loss {total / per_epoch:.4f}  accuracy {accuracy(False):.2f} %", flush=True)
    average(1)
    print(f"slow weights, six views: {accuracy(True):.2f} %")


if __name__ == "__main__":
    main()
