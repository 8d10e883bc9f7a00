#!/usr/bin/env python3
"""Trains on emulated GPUs (tests/cuda/emulated): the GPU path of zero_train, its kernels and streams and NCCL's calls, without a GPU.

usage: emulated_gpu.py BIN_EMULATED TESTS_DATA [-k NAME] [-v]      exits 1 on a fault

Checked: the golden case at stages 0 to 3 on one and two ranks, through NCCL and staged through MPI, under
two orders of the device's work, with states offloaded; between two nodes, fully and in hybrid sharding, where namespaces can be made;
that one run's bits come of any layout where job.reproducible asks for it; adapters with dropout, a quantized base, and conversations, each in a row of its own and several in one, beside the same run on the CPU; that
a stopped rank ends the job within the deadline and is named.
"""
import argparse
import glob
import json
import os
import signal
import subprocess
import sys
import tempfile

from two_nodes import Bench, Fault, TwoNodes, faults, open_nodes

DEADLINE = 20  # an emulated step takes a second


class OneNode(TwoNodes):
    """This machine, with so many ranks and GPUs."""
    names = ["here"]

    def __init__(self, folder):
        self.folder, self.ranks, self.environment, self.job = folder, 1, {}, None

    def has(self, ranks, **environment):
        self.ranks, self.environment = ranks, {f"ZERO_EMULATED_{name}": str(value) for name, value in environment.items()}

    def start(self, program, *arguments):
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", str(self.ranks), program, *arguments]
        self.job = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                    env={**os.environ, "OMP_NUM_THREADS": "1", **self.environment})
        return self.job

    def pids(self, names=None):
        """All that were started in the folder: mpirun gives each rank a process group of its own."""
        found = subprocess.run(["pgrep", "-f", self.folder], capture_output=True, text=True).stdout.split()
        return [int(pid) for pid in found if int(pid) != os.getpid()]


def golden(stage, ranks, degree=0, settings=(), **environment):
    def case(bench):
        if isinstance(bench.nodes, OneNode):
            bench.nodes.has(ranks, **environment)
        return bench.golden(stage, degree, [word for setting in settings for word in ("--set", setting)])
    return case


ADAPTERS = """
[lora]
r = 4
lora_dropout = 0.3
target_modules = "all-linear"
"""
QUANTIZED = ADAPTERS + """
quantization = "nf4"
double_quantization = true
"""
EIGHT_BITS = ADAPTERS + """
quantization = "int8"
"""


def adapters_config(bench, lora):
    return f"""[model]
path = {json.dumps(os.path.join(bench.data, "tiny-lora", "model"))}
[data]
train = [{json.dumps(os.path.join(bench.data, "tiny-lora", "tokens.bin"))}]
[training]
steps = 3
seq_len = 24
local_batch_size = 2
global_batch_size = 4
[optimizer]
lr = 0.01
{lora}
"""


def conversations_config(bench, packing):
    examples = os.path.join(bench.data, "..", "..", "examples", "data")
    some = os.path.join(bench.folder, "some.jsonl")
    with open(os.path.join(examples, "humaneval-chat.jsonl")) as file, open(some, "w") as to:
        to.writelines(file.readlines()[:24])
    return f"""[model]
preset = "llama-tiny"
vocab_size = 32000
[data]
train = [{json.dumps(some)}]
tokenizer = {json.dumps(os.path.join(examples, "tinyllama-tokenizer.model"))}
chat_template = "zephyr"
packing = {str(packing).lower()}
[training]
steps = 2
seq_len = 208
local_batch_size = 2
global_batch_size = 4
[optimizer]
lr = 0.01
"""


def beside_cpu(config_of, ranks, limit, settings=()):
    """The largest relative difference of loss and norm between the run on the device and the one on the CPU in fp32."""
    def case(bench):
        bench.nodes.has(ranks)
        path = os.path.join(bench.folder, "beside.toml")
        with open(path, "w") as file:
            file.write('[job]\noutput_dir = "out"\n' + config_of(bench))
        runs = []
        for device, more in (("cuda", settings), ("cpu", ("training.precision='fp32'",))):
            bench.count += 1
            output = os.path.join(bench.folder, f"run{bench.count}")
            words = [f"job.output_dir={json.dumps(output)}", f"training.device={json.dumps(device)}", "training.precision='fp32'", *more]
            job = bench.nodes.start(bench.program, path, *(word for setting in words for word in ("--set", setting)))
            code, text = bench.finish(job, 240)
            if code != 0:
                raise Fault(f"exit code {code} on {device}\n{text}")
            with open(os.path.join(output, "metrics.jsonl")) as file:
                runs.append([line for line in map(json.loads, file) if "loss" in line])
        worst = max(abs(a[key] - b[key]) / abs(b[key]) for a, b in zip(*runs) for key in ("loss", "grad_norm"))
        if len(runs[0]) != len(runs[1]) or not worst < limit:
            raise Fault(f"relative difference {worst:.2e}")
        return f"largest relative difference of loss and norm from the CPU's {worst:.1e}"
    return case


class Layout:
    """Ranks and what is set beside; the device's work in the order that the seed draws."""
    def __init__(self, ranks, *settings, **environment):
        self.ranks, self.settings, self.environment = ranks, settings, environment


SCATTERED = [Layout(1, "zero.stage=0"),
             Layout(2, "zero.stage=3", SEED=1),
             Layout(2, "zero.stage=2", "training.local_batch_size=1", "activation_checkpoint.mode='full'"),
             Layout(4, "zero.stage=1", "training.local_batch_size=1"),
             Layout(4, "zero.stage=3", "zero.shard_degree=2", "training.local_batch_size=1", "offload.optimizer='cpu'", SEED=2)]


def same_bits(config_of, *settings):
    """Losses, norms and the saved weights of all layouts, to the bit; of the same ones without the key some others, or it would show nothing."""
    def result(bench, layout, *more):
        bench.nodes.has(layout.ranks, **layout.environment)
        path = os.path.join(bench.folder, "layout.toml")
        with open(path, "w") as file:
            file.write('[job]\noutput_dir = "out"\n' + config_of(bench))
        bench.count += 1
        output = os.path.join(bench.folder, f"run{bench.count}")
        words = [f"job.output_dir={json.dumps(output)}", "training.device='cuda'", *settings, *layout.settings, *more]
        code, text = bench.finish(bench.nodes.start(bench.program, path, *(word for setting in words for word in ("--set", setting))), 240)
        if code != 0:
            raise Fault(f"exit code {code} on {layout.ranks} ranks with {layout.settings}\n{text}")
        with open(os.path.join(output, "metrics.jsonl")) as file:
            curve = [(line["loss"], line["grad_norm"]) for line in map(json.loads, file) if "loss" in line]
        weights = {}
        for kind in ("model", "adapter"):
            for path in glob.glob(os.path.join(output, kind, "*.safetensors")):
                with open(path, "rb") as file:
                    weights[kind, os.path.basename(path)] = file.read()
        return curve, weights

    def case(bench):
        first, *others = [result(bench, layout, "job.reproducible='ranks'") for layout in SCATTERED]
        if not first[0] or not first[1]:
            raise Fault("no curve, or no weights")
        for layout, other in zip(SCATTERED[1:], others):
            if other[0] != first[0]:
                step = next((i for i, (a, b) in enumerate(zip(first[0], other[0])) if a != b), min(len(first[0]), len(other[0])))
                raise Fault(f"other bits from step {step + 1} on with {layout.ranks} ranks and {layout.settings}: {first[0]} and {other[0]}")
            if other[1] != first[1]:
                raise Fault(f"other weights with {layout.ranks} ranks and {layout.settings}")
        if result(bench, SCATTERED[0]) == result(bench, SCATTERED[1]):
            raise Fault("the layouts have the same bits without the key: nothing was shown")
        return f"{len(SCATTERED)} layouts, {len(first[0])} steps, one run's bits"
    return case


def stopped_rank(bench):
    bench.nodes.has(2)
    return bench.spoiled_rank(signal.SIGSTOP, [rf"was not done within {DEADLINE} s", r"rank 1 (is missing|has issued it)"], rank=1, deadline=DEADLINE,
                              first_steps=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs")
    parser.add_argument("data")
    parser.add_argument("-k", default="", help="cases whose name holds this")
    parser.add_argument("-v", action="store_true", help="what failing jobs said")
    parser.add_argument("--part", default="0/1", metavar="I/N", help="every N-th case, from number I on")
    options = parser.parse_args()
    first, step = map(int, options.part.split("/"))
    inputs_on_host = ["activation_checkpoint.mode='full'", "offload.activations='cpu'", "activation_checkpoint.mlp_tokens=7"]
    offloaded = ["offload.optimizer='cpu'", "offload.parameters='cpu'"]
    cases = [(f"stage {stage}, 1 rank", golden(stage, 1)) for stage in (0, 3)]
    cases += [(f"stage {stage}, 2 ranks", golden(stage, 2)) for stage in range(4)]
    cases += [("stage 3, 2 ranks, other order", golden(3, 2, SEED=1)),
              ("stage 3, 2 ranks staged", golden(3, 2, settings=["comm.ranks_per_gpu=2"], GPUS=1)),
              ("stage 3, 2 ranks offloaded", golden(3, 2, settings=offloaded)),
              ("inputs in host memory", golden(3, 2, settings=inputs_on_host)),
              ("inputs in host memory, other order", golden(2, 1, settings=inputs_on_host, SEED=1)),
              ("dropout, 1 rank", beside_cpu(lambda b: adapters_config(b, ADAPTERS), 1, 1e-5)),
              ("dropout and NF4, 2 ranks", beside_cpu(lambda b: adapters_config(b, QUANTIZED), 2, 1e-5)),
              ("base in 8 bits, 2 ranks", beside_cpu(lambda b: adapters_config(b, EIGHT_BITS), 2, 1e-5)),
              ("conversations", beside_cpu(lambda b: conversations_config(b, False), 1, 1e-5)),
              ("packed conversations", beside_cpu(lambda b: conversations_config(b, True), 2, 1e-5)),
              ("packed conversations, bf16", beside_cpu(lambda b: conversations_config(b, True), 1, 3e-2, ["training.precision='bf16'"])),
              ("one run's bits, fp32", same_bits(lambda b: adapters_config(b, ""), "training.precision='fp32'")),
              ("one run's bits, bf16, packed", same_bits(lambda b: conversations_config(b, True), "training.precision='bf16'")),
              ("one run's bits, adapters over NF4", same_bits(lambda b: adapters_config(b, QUANTIZED), "training.precision='bf16'")),
              ("one run's bits, states in 16 bits", same_bits(lambda b: adapters_config(b, ""), "training.precision='bf16'",
                                                              "optimizer.state_dtype='bf16'", "optimizer.master_dtype='split'")),
              ("stopped rank", stopped_rank)]
    between = [("stage 3, 2 nodes", golden(3, 4)), ("stage 2, 2 nodes hybrid", golden(2, 4, degree=2))]
    cases, between = cases[first::step], between[first::step]
    program = os.path.join(options.programs, "zero_train")
    settings = {"training.device": "cuda"}
    with tempfile.TemporaryDirectory() as folder:
        wrong = faults(cases, Bench(program, options.data, OneNode(folder), folder, settings), options)
    with tempfile.TemporaryDirectory() as folder:
        nodes = TwoNodes(folder)
        try:
            if absent := open_nodes(nodes):
                print("not run between nodes: " + absent)
            else:
                wrong += faults(between, Bench(program, options.data, nodes, folder, settings), options)
        finally:
            nodes.__exit__()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
