#!/usr/bin/env python3
"""Trains on two nodes of two ranks each, which are network namespaces of this machine joined by a virtual cable.

usage: two_nodes.py ZERO_TRAIN TESTS_DATA [-k NAME] [-v]      exits 77 (skipped) where namespaces cannot be made, 1 on a fault

Checked: the golden case at stages 0 to 3, in full and in hybrid sharding; the bytes that cross the cable in a step; that a cut
cable and a stopped rank end the job everywhere within the deadline, and that the message names the missing rank and its node.
"""
import argparse
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
DEADLINE = 5   # comm.deadline_seconds of the runs that fail
# mpirun itself learns of a lost node by these; by default after eight minutes.
KEEPALIVE = ["--mca", "oob_tcp_keepalive_time", "3", "--mca", "oob_tcp_keepalive_intvl", "1", "--mca", "oob_tcp_keepalive_probes", "3"]
PATIENCE = 15  # seconds after the deadline in which everything must be over

AGENT = """#!/bin/sh
host="$1"
shift
exec ip netns exec "$host" unshare --uts sh -c 'hostname "$0" && eval "$*"' "$host" "$@"
"""


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


class TwoNodes:
    """Namespaces a and b, each with an interface eth0 on a cable between them, host names and a remote shell."""

    def __init__(self, folder):
        pid = os.getpid()
        self.names = [f"zero{pid}a", f"zero{pid}b"]
        self.folder = folder
        self.agent = os.path.join(folder, "agent")
        with open(self.agent, "w") as file:
            file.write(AGENT)
        os.chmod(self.agent, 0o755)

    def __enter__(self):
        hosts = "127.0.0.1 localhost\n" + "".join(f"10.213.77.{i + 1} {name}\n" for i, name in enumerate(self.names))
        ends = [f"zv{os.getpid() % 100000}{letter}" for letter in "ab"]
        for name in self.names:
            run("ip", "netns", "add", name)
            os.makedirs(f"/etc/netns/{name}")
            with open(f"/etc/netns/{name}/hosts", "w") as file:
                file.write(hosts)
        run("ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
        for i, (name, end) in enumerate(zip(self.names, ends)):
            run("ip", "link", "set", end, "netns", name)
            inside = ("ip", "-n", name)
            run(*inside, "link", "set", end, "name", "eth0")
            run(*inside, "link", "set", "eth0", "mtu", "60000")  # headers then count little among the bytes
            run(*inside, "addr", "add", f"10.213.77.{i + 1}/24", "dev", "eth0")
            run(*inside, "link", "set", "lo", "up")
            run(*inside, "link", "set", "eth0", "up")
        run("ip", "netns", "exec", self.names[0], "unshare", "--uts", "true")
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)
            shutil.rmtree(f"/etc/netns/{name}", ignore_errors=True)

    def pids(self, names=None):
        """Processes of the nodes, of all where none are named."""
        inside = lambda name: subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True).stdout.split()
        return [int(pid) for name in names or self.names for pid in inside(name)]

    def kill(self):
        for pid in self.pids():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def cut(self):
        run("ip", "-n", self.names[0], "link", "set", "eth0", "down")

    def mend(self):
        run("ip", "-n", self.names[0], "link", "set", "eth0", "up")

    def bytes_sent(self):
        """By node a over the cable, so far."""
        text = subprocess.run(["ip", "netns", "exec", self.names[0], "cat", "/sys/class/net/eth0/statistics/tx_bytes"], capture_output=True, check=True, text=True)
        return int(text.stdout)

    def start(self, program, *arguments):
        """mpirun on node a, two ranks on each node."""
        mpirun = ["mpirun", "--mca", "plm_rsh_agent", self.agent, "--host", f"{self.names[0]}:2,{self.names[1]}:2", "--mca", "btl", "tcp,vader,self",
                  "--mca", "btl_tcp_if_include", "10.213.77.0/24", "--mca", "oob_tcp_if_include", "10.213.77.0/24", *KEEPALIVE, "--bind-to", "none",
                  "--allow-run-as-root", "--oversubscribe", "-x", "OMP_NUM_THREADS=1", "--mca", "mpi_yield_when_idle", "1", program, *arguments]
        command = ["ip", "netns", "exec", self.names[0], "unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', self.names[0]] + mpirun
        return subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)


def safetensors_header(path):
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        return json.loads(file.read(size)), 8 + size


def expected(data, name):
    """A tensor of fp64 of the golden case."""
    path = os.path.join(data, "tiny", "expect.safetensors")
    header, begin = safetensors_header(path)
    assert header[name]["dtype"] == "F64"
    first, last = header[name]["data_offsets"]
    with open(path, "rb") as file:
        file.seek(begin + first)
        return list(struct.unpack(f"<{(last - first) // 8}d", file.read(last - first)))


class Fault(Exception):
    pass


class Bench:
    def __init__(self, program, data, nodes, folder, settings=None):
        """settings: of every run, beside the case's."""
        self.program, self.data, self.nodes, self.folder = os.path.abspath(program), os.path.abspath(data), nodes, folder
        self.settings = settings or {}
        with open(os.path.join(data, "tiny", "case.json")) as file:
            self.case = json.load(file)
        header, _ = safetensors_header(os.path.join(data, "tiny", "model", "model.safetensors"))
        size = lambda keep: sum(self.product(t["shape"]) for n, t in header.items() if n != "__metadata__" and keep(n))
        self.elements = size(lambda n: True)
        self.once = size(lambda n: n.startswith(("model.embed_tokens", "lm_head", "model.norm")))  # gathered once a pass: first and last unit
        self.count = 0

    @staticmethod
    def product(shape):
        result = 1
        for n in shape:
            result *= n
        return result

    def start(self, steps, stage, degree=0, deadline=60, extra=()):
        self.count += 1
        output = os.path.join(self.folder, f"run{self.count}")
        case = self.case
        settings = {"job.output_dir": output, "training.steps": steps, "zero.stage": stage, "zero.shard_degree": degree, "comm.deadline_seconds": deadline,
                    **self.settings}
        config = os.path.join(self.folder, "config.toml")
        with open(config, "w") as file:
            file.write(f"""[job]
output_dir = "out"
[model]
path = {json.dumps(os.path.join(self.data, "tiny", "model"))}
[data]
train = [{json.dumps(os.path.join(self.data, "tiny", "tokens.bin"))}]
shuffle = false
[training]
steps = 1
seq_len = {case["seq"]}
local_batch_size = {case["batch"] // 4}
global_batch_size = {case["batch"]}
max_norm = {case["clip_grad_norm"]}
precision = "fp32"
device = "cpu"
[optimizer]
lr = {case["lr"]}
betas = {case["betas"]}
eps = {case["eps"]}
weight_decay = {case["weight_decay"]}
[lr_scheduler]
type = "cosine"
warmup_steps = {case["warmup_steps"]}
min_lr_ratio = {case["min_lr_ratio"]}
""")
        arguments = [config]
        for key, value in settings.items():
            arguments += ["--set", f"{key}={json.dumps(value)}"]
        return self.nodes.start(self.program, *arguments, *extra), output

    def finish(self, job, seconds):
        """(exit code, output); a job that does not end is a fault."""
        try:
            output, _ = job.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.nodes.kill()
            output, _ = job.communicate()
            raise Fault(f"the job did not end within {seconds} s\n{output}")
        return job.returncode, output

    def complete(self, steps, stage, degree=0, extra=()):
        job, output = self.start(steps, stage, degree, extra=extra)
        code, text = self.finish(job, 120)
        if code != 0:
            raise Fault(f"exit code {code}\n{text}")
        with open(os.path.join(output, "metrics.jsonl")) as file:
            lines = [json.loads(line) for line in file]
        if f"on {len(self.nodes.names)} node{'s' if len(self.nodes.names) > 1 else ''}," not in text:
            raise Fault(f"the ranks did not see {len(self.nodes.names)} nodes\n{text}")
        return [line for line in lines if "loss" in line]

    def golden(self, stage, degree, extra=()):
        metrics = self.complete(self.case["steps"], stage, degree, extra)
        worst = 0
        for key, name in (("loss", "step.loss"), ("grad_norm", "step.grad_norm")):
            want = expected(self.data, name)
            got = [m[key] for m in metrics]
            if len(got) != len(want):
                raise Fault(f"{len(got)} steps, not {len(want)}")
            worst = max([worst] + [abs(a - b) / abs(b) for a, b in zip(got, want)])
        if not worst < 1e-5:
            raise Fault(f"relative error {worst:.2e}")
        return f"largest relative error of loss and norm {worst:.1e}"

    def traffic(self, stage, degree):
        """Per step and direction. Gathers go round a ring, which crosses the cable once in each direction: what one rank sends by
        the table, (N-1)/N of the elements. Sums go straight to their owner: half of what both ranks of a node send in two
        thirds of their messages."""
        few, many = 3, 23
        before = self.nodes.bytes_sent()
        self.complete(few, stage, degree)
        between = self.nodes.bytes_sent()
        self.complete(many, stage, degree)
        measured = ((self.nodes.bytes_sent() - between) - (between - before)) / (many - few)
        p = self.elements
        gathers = {0: 0, 1: p, 2: p, 3: 2 * p - self.once}[stage]
        sums = 2 * p if stage == 0 else p
        # Hybrid: the sharding groups stay inside a node; an all-reduce of the shard's gradient, 2(G-1)/G P/S for each of two ranks.
        elements = p if degree else 0.75 * gathers + sums
        payload = 4 * elements
        if not payload <= measured <= 1.05 * payload + 8192:
            raise Fault(f"{measured:.0f} bytes a step cross the cable, not {payload:.0f}")
        return f"{measured:.0f} bytes a step cross the cable in each direction; payload by the table {payload:.0f}"

    def wait_for_steps(self, job, output, steps):
        path = os.path.join(output, "metrics.jsonl")
        begin = time.monotonic()
        while time.monotonic() - begin < 60:
            if os.path.exists(path) and sum(1 for _ in open(path)) >= steps:
                return
            if job.poll() is not None:
                raise Fault(f"the job ended early\n{job.communicate()[0]}")
            time.sleep(0.05)
        raise Fault("the job does not get going")

    def must_fail(self, spoil, patterns, degree=0, deadline=DEADLINE, first_steps=5):
        job, output = self.start(100000, 3, degree, deadline)
        self.wait_for_steps(job, output, first_steps)
        begin = time.monotonic()
        spoil(job)
        try:
            code, text = self.finish(job, deadline + PATIENCE)
        finally:
            self.nodes.kill()
        seconds = time.monotonic() - begin
        if code == 0:
            raise Fault("the job claims success")
        for pattern in patterns:
            if not re.search(pattern, text):
                raise Fault(f"does not say {pattern!r}\n{text}")
        left = self.wait_until_empty(5)
        if left:
            raise Fault(f"processes are left: {left}")
        return f"over after {seconds:.1f} s with exit code {code}"

    def wait_until_empty(self, seconds):
        begin = time.monotonic()
        while True:
            pids = self.nodes.pids()
            if not pids or time.monotonic() - begin > seconds:
                return pids
            time.sleep(0.1)

    def cut_cable(self, degree):
        other = self.nodes.names[1]
        try:
            return self.must_fail(lambda job: self.nodes.cut(), [rf"deadline of {DEADLINE} s passed in #\d+ \w+ of \d+ \w+", rf"rank [23] on node {other}"], degree)
        finally:
            self.nodes.mend()

    def spoiled_rank(self, signal_number, patterns, rank=3, **how):
        def spoil(_):
            for pid in sorted(self.nodes.pids()):
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if f"OMPI_COMM_WORLD_RANK={rank}\0".encode() in file.read():
                        return os.kill(pid, signal_number)
            raise Fault(f"rank {rank} was not found")
        return self.must_fail(spoil, patterns, **how)

    def stopped_rank(self):
        return self.spoiled_rank(signal.SIGSTOP, [rf"deadline of {DEADLINE} s passed in #\d+ \w+ of \d+ \w+", rf"rank 3 on node {self.nodes.names[1]}"])

    def killed_rank(self):
        """mpirun sees it and ends the job at once."""
        return self.spoiled_rank(signal.SIGKILL, [rf"rank 3 .*node {self.nodes.names[1]} exited on signal 9"])


def open_nodes(nodes):
    """Makes the nodes' namespaces. Why there are none here, or None."""
    try:
        nodes.__enter__()
    except (subprocess.CalledProcessError, OSError) as error:
        return f"no network namespaces here ({getattr(error, 'stderr', b'') or error})"
    return None


def faults(cases, bench, options):
    """Runs the cases that are asked for, a line each; how many went wrong."""
    wrong = 0
    for name, case in cases:
        if options.k not in name:
            continue
        begin = time.monotonic()
        try:
            said = case(bench)
        except Fault as fault:
            wrong += 1
            said = "FAULT: " + (str(fault) if options.v else str(fault).split("\n")[0])
        print(f"{name:32} {time.monotonic() - begin:5.1f} s  {said}", flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("data")
    parser.add_argument("-k", default="", help="cases whose name holds this")
    parser.add_argument("-v", action="store_true", help="what failing jobs said")
    options = parser.parse_args()
    cases = [(f"golden stage {stage}", lambda b, stage=stage: b.golden(stage, 0)) for stage in range(4)]
    cases += [(f"golden hybrid stage {stage}", lambda b, stage=stage: b.golden(stage, 2)) for stage in (1, 2, 3)]
    cases += [(f"traffic stage {stage}", lambda b, stage=stage: b.traffic(stage, 0)) for stage in range(4)]
    cases += [("traffic hybrid stage 3", lambda b: b.traffic(3, 2))]
    cases += [("cut cable", lambda b: b.cut_cable(0)), ("cut cable hybrid", lambda b: b.cut_cable(2)), ("stopped rank", lambda b: b.stopped_rank()), ("killed rank", lambda b: b.killed_rank())]
    with tempfile.TemporaryDirectory() as folder:
        nodes = TwoNodes(folder)
        try:
            if absent := open_nodes(nodes):
                print("skipped: " + absent)
                return SKIPPED
            return 1 if faults(cases, Bench(options.program, options.data, nodes, folder), options) else 0
        finally:
            nodes.__exit__()


if __name__ == "__main__":
    sys.exit(main())
