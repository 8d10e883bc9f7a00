#!/usr/bin/env python3
"""Runs a job of three ranks in which one fails, in every way, by shared memory and by messages; checks time, exit code and message.

usage: failing_rank.py FAILING_RANK_PROGRAM MPIRUN [options of mpirun ...]
"""
import contextlib
import os
import re
import signal
import subprocess
import sys
import time

LIMIT = 10.0  # seconds in which a job must have ended everywhere

# A rank that waits for a returned rank learns of it at once in shared memory. With messages the deadline ends
# it, which is not tested.
RETURNED = r"#20 all_reduce of 100000 float \(backward, unit 20, group 0\) on rank [02] waits for rank 1, which has ended after #19"
# Jobs in which no rank waits for another end alike with messages, and run once.
BY_SHARED_MEMORY = {"return", "uncaught-return", "none", "alike", "code", "uncaught-none", "static-none", "leaked-none", "uncaught-alike"}

# Open MPI 4.1's mpirun can hang or crash in its own end, after all ranks have ended: about 1 in 60 jobs each, where
# ranks abort while another has returned (PMIx_server_finalize). Such a case runs again.
TRIES = 4

LEFT = [r"error: rank 1: the program has ended in the middle of its job, .*: exit\(\) was called, or the World was never destroyed"]

# how a rank fails, exit code of the job (None: any but 0), what the output must say, what must be said once at most
CASES = [
    ("none", 0, [], []),
    ("kill", None, [r"rank 1 .*signal 9"], []),
    ("exit", None, [r"rank 1|process rank"], []),
    ("leave", None, LEFT, [r"in the middle of its job"]),
    ("return", 1, [RETURNED], []),
    ("throw-late", 2, [r"error: rank 1: the file vanished"], [r"error:"]),
    ("throw", 2, [r"error: rank 1: the file vanished"], [r"the file vanished"]),
    ("check", 1, [r"error: rank 1: internal error: .*an invariant is broken"], [r"an invariant is broken"]),
    ("stop", 1, [r"deadline of 2 s passed in #20 all_reduce of 100000 float \(backward, unit 20, group 0\)", r"rank 1"], []),
    ("agree", 2, [r"error: rank 1: the file vanished"], [r"the file vanished"]),
    ("alike", 2, [r"error: no such key"], [r"no such key"]),
    ("code", 75, [], []),
    ("uncaught-none", 0, [], []),
    ("uncaught-throw", 2, [r"error: rank 1: the file vanished"], [r"the file vanished"]),
    ("uncaught-check", 1, [r"error: rank 1: internal error: .*an invariant is broken"], [r"an invariant is broken"]),
    ("uncaught-return", 1, [RETURNED], []),
    ("uncaught-leave", None, LEFT, [r"in the middle of its job"]),
    ("static-none", 0, [], []),
    ("leaked-none", None, [r"error: rank 0: the program has ended in the middle of its job"], []),
    ("uncaught-alike", 2, [r"error: no such key"], [r"no such key"]),
]


def living_children(pid):
    """The processes below this one that have not ended."""
    found = []
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        children = file.read().split()
    for child in children:
        with contextlib.suppress(OSError), open(f"/proc/{child}/stat") as file:
            if file.read().rpartition(")")[2].split()[0] not in "ZX":
                found.append(child)
    return found


def run(mpirun, program, kind, shared_memory):
    """Exit code (None when it had to be killed), seconds and output of one job, and whether mpirun itself failed."""
    start = time.monotonic()
    job = subprocess.Popen(mpirun + ["-np", "3", program, kind, "1", shared_memory], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        output, _ = job.communicate(timeout=30)
        return job.returncode, time.monotonic() - start, output, job.returncode < 0
    except subprocess.TimeoutExpired:
        mpirun_hangs = not living_children(job.pid)
        os.killpg(job.pid, signal.SIGKILL)
        output, _ = job.communicate()
        return None, time.monotonic() - start, output, mpirun_hangs


def main():
    program, mpirun = sys.argv[1], sys.argv[2:]
    shm_before = set(os.listdir("/dev/shm"))
    wrong = 0
    for kind, code, needed, once in CASES:
        for shared_memory in ("on",) if kind in BY_SHARED_MEMORY else ("on", "off"):
            for _ in range(TRIES):
                got, seconds, output, mpirun_failed = run(mpirun, program, kind, shared_memory)
                if not mpirun_failed:
                    break
                print(f"{kind:14} shared_memory={shared_memory:3} mpirun itself hung or crashed")
            faults = []
            if got is None or seconds > LIMIT:
                faults.append(f"took {seconds:.1f} s")
            if got is not None and (got == 0 if code is None else got != code):
                faults.append(f"exit code {got}, not {'0' if code == 0 else code or 'one of failure'}")
            if code == 0 and "error" in output:
                faults.append("tells of an error")
            faults += [f"does not say {p}" for p in needed if not re.search(p, output)]
            faults += [f"says {p} {len(re.findall(p, output))} times" for p in once if len(re.findall(p, output)) != 1]
            left = [f for f in set(os.listdir("/dev/shm")) - shm_before if re.match(r"zero-\d+", f) and not os.path.exists("/proc/" + f.split("-")[1])]
            faults += [f"left /dev/shm/{f}" for f in left]
            print(f"{kind:14} shared_memory={shared_memory:3} {seconds:5.1f} s  exit {got}  {'FAULT: ' + '; '.join(faults) if faults else 'ok'}")
            if faults:
                print("\n".join("    | " + line for line in output.splitlines()))
                wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
