#!/usr/bin/env python3
"""Programs that own MPI, or a communicator: they are served whatever the level of threads, MPI goes on afterwards, and what
cannot be served is refused.

usage: own_mpi.py OWN_MPI_PROGRAM MPIRUN [options of mpirun ...]
"""
import re
import subprocess
import sys

# kind, ranks of the job, processes of each world, exit code, what is said
SERVED = [(kind, ranks, ranks) for kind in ("single", "funneled", "serialized", "multiple") for ranks in (1, 2)] + [
    ("halves", 4, 2), ("self", 2, 1), ("serialized-thread", 2, 2)]
REFUSED = [
    ("thread", 2, r"this thread may not call MPI, .*MPI_THREAD_SERIALIZED"),
    ("null", 2, r"MPI_COMM_NULL has no processes"),
    ("ended", 1, r"MPI has ended in this program"),
    ("unstarted", 1, r"before MPI has started"),
]


def run(mpirun, program, kind, ranks, stage):
    done = subprocess.run(mpirun + ["-np", str(ranks), program, kind, str(stage)], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def main():
    program, mpirun = sys.argv[1], sys.argv[2:]
    wrong = []
    norms = set()
    for number, (kind, ranks, size) in enumerate(SERVED):
        stage = 3 * ((number + number // 2) % 2)  # each stage with one rank and with two, whose norms are equal
        code, out, err = run(mpirun, program, kind, ranks, stage)
        lines = sorted(line for line in out.splitlines() if line.startswith("process "))
        norms |= {line.split()[-1] for line in lines}
        places = sorted(line.split(":")[0] for line in lines)
        want = sorted(f"process {rank} of {size}" for rank in range(size)) * (ranks // size)
        if code != 0 or places != sorted(want) or "error" in err:
            wrong.append((kind, ranks, stage, code, out, err))
    if len(norms) != 1:
        wrong.append(("norms", norms))
    for kind, ranks, message in REFUSED:
        code, out, err = run(mpirun, program, kind, ranks, 3)
        if code != 0 or len(re.findall("refused: .*" + message, err)) != ranks:
            wrong.append((kind, code, out, err))
    for kind, ranks in (("throw", 2), ("halves-throw", 4)):
        code, out, err = run(mpirun, program, kind, ranks, 3)
        if code == 0 or "it broke" not in err or "process " in out:
            wrong.append((kind, code, out, err))
    for case in wrong:
        print("FAULT:", *case, sep="\n    ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
