"""One update of an optimizer of a peer, on the tensors of a Llama preset, beside zero_bench step.

usage: peer_optimizers.py PEER [--preset llama-110m] [--threads 1,2] [--updates 4]
Prints a JSON line for each number of threads: seconds of the updates after one that is not timed, bytes of state. Weights
and gradients are fp32; matrices decay, vectors do not; an update takes the norm of all gradients, too, as ours does.
Without PEER it prints the names of the peers that can be imported, one a line.
"""
import argparse
import importlib.metadata
import json
import resource
import time

import torch

#           hidden layers heads kv  inter  vocab
PRESETS = {
    "llama-15m": (288, 6, 6, 6, 768, 32000),
    "llama-110m": (768, 12, 12, 4, 2048, 32000),
    "tinyllama-1.1b": (2048, 22, 32, 4, 5632, 32000),
}
LR, DECAY, BETAS = 1e-5, 0.1, (0.9, 0.95)


def tensors_of(preset):
    """(matrices of the blocks, embedding and head, vectors), with gradients."""
    hidden, layers, heads, kv, inner, vocab = PRESETS[preset]
    narrow = hidden // heads * kv
    block = [(hidden, hidden), (narrow, hidden), (narrow, hidden), (hidden, hidden), (inner, hidden), (inner, hidden), (hidden, inner)]
    generator = torch.Generator().manual_seed(0)

    def tensor(shape):
        weights = torch.nn.Parameter(torch.empty(shape).normal_(0, 0.02, generator=generator) if len(shape) > 1 else torch.ones(shape))
        weights.grad = torch.empty(shape).normal_(0, 1e-3, generator=generator)
        return weights

    return ([tensor(shape) for _ in range(layers) for shape in block], [tensor((vocab, hidden)) for _ in range(2)],
            [tensor((hidden,)) for _ in range(2 * layers + 1)])


class Pair:
    """Two optimizers that step together."""

    def __init__(self, *both):
        self.both = both
        self.state = {key: value for one in both for key, value in one.state.items()}

    def step(self):
        for one in self.both:
            one.step()
        self.state = {key: value for one in self.both for key, value in one.state.items()}


def groups(matrices, others, vectors):
    return [{"params": matrices + others, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0.0}]


def of_torch(name, **more):
    return lambda *tensors: getattr(torch.optim, name)(groups(*tensors), lr=LR, **more)


def torch_muon(matrices, others, vectors):
    return Pair(torch.optim.Muon(matrices, lr=LR, weight_decay=DECAY), torch.optim.AdamW(groups([], others, vectors), lr=LR, betas=BETAS, fused=True))


def of_bitsandbytes(*tensors):
    import bitsandbytes
    return bitsandbytes.optim.AdamW8bit(groups(*tensors), lr=LR, betas=BETAS)


def of_prodigyopt(*tensors):
    import prodigyopt
    return prodigyopt.Prodigy(groups(*tensors), lr=1.0)


def of_lion_pytorch(*tensors):
    import lion_pytorch
    return lion_pytorch.Lion(groups(*tensors), lr=LR)


def of_deepspeed(name, **more):
    def make(*tensors):
        from deepspeed.ops import adam, lion
        return getattr(adam if "Adam" in name else lion, name)(groups(*tensors), lr=LR, betas=BETAS, **more)
    return make


def deepspeed_muon(method):
    def make(matrices, others, vectors):
        from deepspeed.runtime.zero.muon.original_muon import SingleDeviceMuonWithAuxAdam
        aside = [dict(group, use_muon=False, lr=LR, betas=BETAS) for group in groups([], others, vectors)]
        return SingleDeviceMuonWithAuxAdam([{"params": matrices, "use_muon": True, "lr": LR, "weight_decay": DECAY, "ns_method": method}, *aside])
    return make


# Name: (what makes it, the package it is of).
PEERS = {
    "torch.optim.AdamW fused": (of_torch("AdamW", betas=BETAS, fused=True), "torch"),
    "torch.optim.AdamW foreach": (of_torch("AdamW", betas=BETAS, foreach=True), "torch"),
    "DeepSpeedCPUAdam": (of_deepspeed("DeepSpeedCPUAdam", adamw_mode=True), "deepspeed"),
    "torch.optim.SGD fused": (of_torch("SGD", momentum=0.9, nesterov=True, fused=True), "torch"),
    "torch.optim.SGD foreach": (of_torch("SGD", momentum=0.9, nesterov=True, foreach=True), "torch"),
    "lion-pytorch": (of_lion_pytorch, "lion-pytorch"),
    "DeepSpeedCPULion": (of_deepspeed("DeepSpeedCPULion"), "deepspeed"),
    "torch.optim.Adafactor": (of_torch("Adafactor", foreach=False), "torch"),
    "torch.optim.Adafactor foreach": (of_torch("Adafactor", foreach=True), "torch"),
    "prodigyopt": (of_prodigyopt, "prodigyopt"),
    "torch.optim.Muon": (torch_muon, "torch"),
    "DeepSpeed Muon, gram": (deepspeed_muon("gram"), "deepspeed"),
    "DeepSpeed Muon, standard": (deepspeed_muon("standard"), "deepspeed"),
    "bitsandbytes AdamW8bit": (of_bitsandbytes, "bitsandbytes"),
    "get_total_norm": (None, "torch"),
}


def version_of(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def bytes_of_state(optimizer):
    """Every storage once; numbers that Python keeps do not count."""
    storages = {}
    for state in optimizer.state.values() if optimizer else []:
        for value in state.values():
            if torch.is_tensor(value):
                storages[value.untyped_storage().data_ptr()] = value.untyped_storage().nbytes()
    return sum(storages.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("peer", nargs="?", choices=PEERS)
    parser.add_argument("--preset", default="llama-110m", choices=PRESETS)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--updates", type=int, default=4)
    options = parser.parse_args()
    if not options.peer:
        return print("\n".join(name for name, (_, package) in PEERS.items() if version_of(package)))
    make, package = PEERS[options.peer]
    torch.set_float32_matmul_precision("medium")  # on x86 their fast setting
    tensors = tensors_of(options.preset)
    gradients = [tensor.grad for kind in tensors for tensor in kind]
    parameters = sum(gradient.numel() for gradient in gradients)
    optimizer = make(*tensors) if make else None
    for threads in (int(t) for t in options.threads.split(",")):
        torch.set_num_threads(threads)
        seconds = []
        for _ in range(1 + options.updates):
            start = time.perf_counter()
            torch.nn.utils.get_total_norm(gradients)
            if optimizer:
                optimizer.step()
            seconds.append(time.perf_counter() - start)
        print(json.dumps({"version": 1, "benchmark": "optimizers", "what": options.peer, "package": f"{package} {version_of(package)}",
                          "preset": options.preset, "threads": threads, "parameters": parameters, "update_s": seconds[1:],
                          "state_bytes": bytes_of_state(optimizer), "resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}), flush=True)


if __name__ == "__main__":
    main()
