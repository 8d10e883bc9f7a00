#!/usr/bin/env python3
"""Trains on emulated GPUs (tests/cuda/emulated): the GPU path of zero_train, its kernels and streams and NCCL's calls, without a GPU.

usage: emulated_gpu.py BIN_EMULATED TESTS_DATA [-k NAME] [-v]      exits 1 on a fault

Checked: the golden case at stages 0 to 3 on one and two ranks, through NCCL and staged through MPI, under
two orders of the device's work, with states offloaded; between two nodes, fully and in hybrid sharding, where namespaces can be made; that
a stopped rank ends the job within the deadline and is named.
"""
import argparse
import os
import signal
import subprocess
import sys
import tempfile

from two_nodes import Bench, TwoNodes, faults

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
    options = parser.parse_args()
    offloaded = ["offload.optimizer='cpu'", "offload.parameters='cpu'"]
    cases = [(f"stage {stage}, 1 rank", golden(stage, 1)) for stage in (0, 3)]
    cases += [(f"stage {stage}, 2 ranks", golden(stage, 2)) for stage in range(4)]
    cases += [("stage 3, 2 ranks, other order", golden(3, 2, SEED=1)),
              ("stage 3, 2 ranks staged", golden(3, 2, settings=["comm.ranks_per_gpu=2"], GPUS=1)),
              ("stage 3, 2 ranks offloaded", golden(3, 2, settings=offloaded)),
              ("stopped rank", stopped_rank)]
    between = [("stage 3, 2 nodes", golden(3, 4)), ("stage 2, 2 nodes hybrid", golden(2, 4, degree=2))]
    program = os.path.join(options.programs, "zero_train")
    settings = {"training.device": "cuda"}
    with tempfile.TemporaryDirectory() as folder:
        wrong = faults(cases, Bench(program, options.data, OneNode(folder), folder, settings), options)
    with tempfile.TemporaryDirectory() as folder:
        nodes = TwoNodes(folder)
        try:
            nodes.__enter__()
            wrong += faults(between, Bench(program, options.data, nodes, folder, settings), options)
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"not run between nodes: no network namespaces here ({getattr(error, 'stderr', b'') or error})")
        finally:
            nodes.__exit__()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
