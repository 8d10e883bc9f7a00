#!/usr/bin/env python3
"""Trains again and again under scripts/keep_training while ranks, mpirun, the script, the disk and checkpoints are harmed at random
moments, and compares with runs that nobody disturbed: losses and norms of every step and every file of the result, to the bit; nothing
may be left of ended jobs, and nothing may grow.

usage: soak.py BIN [--seconds 600] [--steps 2000] [--every 5] [--variants 4] [--ranks 4] [--seed 0] [--set KEY=VALUE] [--keep FOLDER]
               [--faults N] [--only KIND] [--failing-calls N]

--faults ends it after so many faults, before the time is over. --only names what the faults' kinds begin with ("kill"). With
--failing-calls one in N file calls on the run's folder fails in every process (failing_calls.c). Exits 1 on a difference or a leak, 77 where no file system can be mounted. --keep takes what is left of rounds with findings.
"""
import argparse
import array
import collections
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

from faults import KINDS, Checkpoints, Disk, Fault, failing_calls, send
from samples import Sampler

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs"))
from checks import UNLIKE, mount_apart

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "keep_training")
DISK_BYTES = 32 << 20
CONFIG = """[model]
preset = "llama-tiny"
[data]
train = ["tokens.bin"]
[training]
seq_len = 32
local_batch_size = 1
global_batch_size = 4
device = "cpu"
[comm]
deadline_seconds = 6
"""
VARIANTS = {
    "stage 3, bf16, AdamW": ["zero.stage=3", "checkpoint.interval=20", "checkpoint.keep=3"],
    "stage 1, fp16, states and lock on the disk": ["zero.stage=1", "training.precision=fp16", "offload.optimizer=nvme", "offload.nvme_dir=disk/nvme", "checkpoint.interval=30"],
    "stage 2, fp32, Muon, job.time_limit": ["zero.stage=2", "training.precision=fp32", "optimizer.name=muon", "optimizer.lr=0.02", "job.time_limit=00:20",
                                            "checkpoint.interval=25", "checkpoint.keep=4"],
    "stage 3, bf16, LoRA, checkpoints by the clock": ["zero.stage=3", "lora.r=4", "optimizer.lr=0.01", "checkpoint.every_minutes=0.02", "checkpoint.keep=3"],
}
GROWTH_BYTES = 3 << 20  # of a rank between two quarters of its life: pages come and go with the allocator's pool
STRIKES = 5  # faults after which a step is waited for
MARK = "ZERO_SOAK"


class Place:
    """Folder, small disk and environment of one soak."""

    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        os.makedirs(self.path("disk"))
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "none", self.path("disk")], check=True)
        os.makedirs(self.path("tmp"))
        self.disk = Disk(self.path("disk"))
        self.mark = uuid.uuid4().hex
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1", "ZERO_BIN": args.bin, "TMPDIR": self.path("tmp"), MARK: self.mark}
        if args.failing_calls:
            self.environment |= failing_calls(folder, below=self.path("disk/out"), one_in=args.failing_calls)
        numbers = random.Random(args.seed)
        with open(self.path("tokens.bin"), "wb") as file:
            array.array("H", (min(511, int(numbers.expovariate(0.02))) for _ in range(60000))).tofile(file)
        with open(self.path("config.toml"), "w") as file:
            file.write(CONFIG)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def start(self, out, settings, *options):
        words = [f"job.output_dir={out}", f"training.steps={self.args.steps}", *settings, *self.args.set]
        command = [SCRIPT, "--ranks", str(self.args.ranks), "--pause", "0", "--tries", "1000", "--hang", "20", "--on-stop", "restart", *options, "config.toml",
                   *(word for pair in words for word in ("--set", pair))]
        with open(self.path("log"), "a") as log:
            return subprocess.Popen(command, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)

    def survivors(self):
        """Processes that the runs of this soak left."""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if f"{MARK}={self.mark}".encode() in file.read():
                        found.append(int(name))
            except OSError:
                pass
        return found

    def wait_for_nobody(self, seconds):
        end = time.monotonic() + seconds
        while self.survivors() and time.monotonic() < end:
            time.sleep(0.1)
        return self.survivors()

    def told(self):
        """(starts beyond the first of each script, checkpoints that were saved elsewhere and moved home), as the log has them."""
        with open(self.path("log"), errors="replace") as file:
            lines = list(file)
        starts = [line for line in lines if line.startswith("keep_training: start ") and " start 1:" not in line]
        return len(starts), sum("zero-checkpoint-" in line and " is now " in line for line in lines)

    def metrics(self, out):
        with open(self.path(out, "metrics.jsonl")) as file:
            return [{key: value for key, value in json.loads(line).items() if key not in UNLIKE} for line in file]

    def result(self, out):
        found = {}
        for kind in ("model", "adapter"):
            for name in os.listdir(self.path(out, kind)) if os.path.isdir(self.path(out, kind)) else []:
                with open(self.path(out, kind, name), "rb") as file:
                    found[f"{kind}/{name}"] = file.read()
        return found


class Soak:
    def __init__(self, args, place):
        self.args, self.place, self.counts, self.findings = args, place, collections.Counter(), []
        self.references, self.trends, self.killed_scripts = {}, [], set()

    def find(self, where, what):
        self.findings.append(f"{where}: {what}")
        print(f"FOUND in {where}: {what}", flush=True)

    def undisturbed(self, name):
        """The reference of a variant, made once; memory and descriptors of its ranks are looked at too."""
        if name in self.references:
            return self.references[name]
        process = self.place.start("reference", [*VARIANTS[name], "job.time_limit="])
        with Sampler(process.pid) as sampler:
            code = process.wait()
        where = f"undisturbed {name}"
        if code != 0:
            self.find(where, f"exit code {code}")
        self.check_growth(where, sampler)
        self.check_leavings(where, "reference")
        self.references[name] = (self.place.metrics("reference"), self.place.result("reference"))
        steps = len(self.references[name][0])
        if steps != self.args.steps or not self.references[name][1]:
            self.find(where, f"{steps} steps, {len(self.references[name][1])} files")
        shutil.move(self.place.path("reference"), tempfile.mkdtemp(dir=self.place.path("tmp"), prefix="kept-"))
        return self.references[name]

    def check_growth(self, where, sampler):
        for (who, *_), trend in sampler.trends(shortest=20).items():
            self.trends.append((where, who, trend))
            if trend.grown > GROWTH_BYTES and trend.seconds > 40:
                self.find(where, f"{who} grew by {trend.grown >> 10} KiB in the second half of {trend.seconds:.0f} s")
            if trend.descriptors_grown > 2:  # a script that starts a process holds two more
                self.find(where, f"{who} holds {trend.descriptors_grown} descriptors more at its end")

    def check_leavings(self, where, out, filled=0):
        """Nothing but a finished run: no process, no file elsewhere, no checkpoint beyond those that stay. Scripts that were killed leave
        folders of their own."""
        if left := self.place.wait_for_nobody(10):
            self.find(where, f"processes are left: {left}")
            send(left, signal.SIGKILL)
        for folder in ("/dev/shm", self.place.path("tmp")):
            for name in os.listdir(folder):
                if name.startswith("zero-keep-") and int(name.split("-")[2]) in self.killed_scripts:
                    shutil.rmtree(os.path.join(folder, name))
        if left := os.listdir("/dev/shm"):
            self.find(where, f"/dev/shm holds {left}")
        left = [name for name in os.listdir(self.place.path("tmp")) if not name.startswith("kept-")] + [name for name in os.listdir(self.place.folder) if name.startswith("zero-checkpoint-")]
        for name in left:
            self.find(where, f"{name} is left")
        found = sorted(os.listdir(self.place.path(out)))
        if [name for name in found if name not in (".keep_training", ".zero_run", "adapter", "checkpoints", "config.toml", "metrics.jsonl", "model", "token_cache")]:
            self.find(where, f"the output directory holds {found}")
        names = sorted(os.listdir(self.place.path(out, "checkpoints")))
        keep = max([int(word.partition("=")[2]) for word in self.settings if word.startswith("checkpoint.keep=")], default=2)
        more = bool(filled)  # one that was saved elsewhere and moved home is beyond them until the next one is written; the last one may have found no room
        unremoved = [name for name in names if name.endswith(".tmp")] if filled else []  # by a call that failed; the next save or start sweeps
        if len(names) - len(unremoved) > keep + more or any(len(name) != 13 for name in set(names).difference(unremoved)) or (names[-1] != f"step-{self.args.steps:08d}" and not filled):
            self.find(where, f"checkpoints/ holds {names}")
        files = [name for _, _, names in os.walk(self.place.path("disk", "nvme")) for name in names]
        if files:
            self.find(where, f"offload.nvme_dir holds {files}")

    def round(self, number, name, end):
        where, settings = f"round {number}, {name}", VARIANTS[name]
        dice = random.Random(f"{self.args.seed}/{number}")
        every = self.args.every * dice.choice((0.4, 1, 2.5))
        place, checkpoints, faults = self.place, Checkpoints(self.place.path("disk/out/checkpoints")), collections.Counter()
        process, filled, strikes = place.start("disk/out", settings), -math.inf, 0
        with Sampler(process.pid) as sampler:
            while True:
                fault = Fault(dice, every, self.args.only)
                try:
                    code = process.wait(timeout=fault.gap)
                    if code != 2 or (time.monotonic() - filled > 10 and not self.args.failing_calls):
                        break
                    self.counts["first starts refused on the full or failing disk"] += 1  # as they must
                    process = place.start("disk/out", settings)
                except subprocess.TimeoutExpired:
                    pass
                if self.is_over(end, faults):
                    continue  # the round ends in peace
                if (strikes := strikes + 1) % STRIKES == 0:  # else a busy machine never gets through a start
                    self.wait_for_a_step(process)
                if fault.kind.endswith("the script"):
                    done, process = self.end_script(where, process, fault.kind, settings)
                else:
                    done = fault.strike(process.pid, place.disk, checkpoints)
                sampler.look_at(process.pid)
                if done is not None:
                    faults[fault.kind] += 1
                    print(f"{where}: {fault.kind}: {done}", flush=True)
                if fault.kind == "fill the disk":
                    filled = time.monotonic()
                for name_aside in checkpoints.clear_set_aside():
                    self.find(where, f"{name_aside} was whole")
        place.disk.empty()
        if process.returncode != 0:
            self.find(where, f"exit code {process.returncode}")
        self.check_growth(where, sampler)
        for name_aside in checkpoints.clear_set_aside():
            self.find(where, f"{name_aside} was whole")
        if process.returncode == 0:
            self.check_leavings(where, "disk/out", faults["fill the disk"] or self.args.failing_calls)
            self.compare(where, *self.references[name])
        self.counts.update(faults)
        self.counts["checkpoints set aside"] += checkpoints.set_aside
        self.counts["rounds"] += 1

    def is_over(self, end, faults=None):
        """`faults`: of the round that is under way."""
        struck = [number for kind, number in [*self.counts.items(), *(faults or {}).items()] if kind in dict(KINDS)]
        return time.monotonic() > end or (self.args.faults > 0 and sum(struck) >= self.args.faults)

    def wait_for_a_step(self, process):
        path, end = self.place.path("disk/out/metrics.jsonl"), time.monotonic() + 90
        before = os.path.getmtime(path) if os.path.exists(path) else 0
        while process.poll() is None and time.monotonic() < end and (os.path.getmtime(path) if os.path.exists(path) else 0) == before:
            time.sleep(0.1)

    def end_script(self, where, process, kind, settings):
        """Ends the script as a user does, or as the kernel does; all of its job must end. The same command goes on."""
        self.killed_scripts.add(process.pid)
        send([process.pid], signal.SIGTERM if kind.startswith("SIGTERM") else signal.SIGKILL)
        try:
            code = process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.find(where, "the script did not end within 60 s of SIGTERM")
            process.kill()
            code = process.wait()
        if left := self.place.wait_for_nobody(30):
            self.find(where, f"{kind}: processes are left: {left}")
            send(left, signal.SIGKILL)
        return f"exit code {code}", self.place.start("disk/out", settings)

    def compare(self, where, metrics, result):
        mine = self.place.metrics("disk/out")
        differing = [line.get("step") for line, other in zip(mine, metrics) if line != other]
        if differing or len(mine) != len(metrics):
            self.find(where, f"{len(mine)} lines of metrics, {len(differing)} differ, the first at step {differing[:1]}")
        found = self.place.result("disk/out")
        if found != result:
            self.find(where, f"files of the result differ: {sorted(name for name in {*found, *result} if found.get(name) != result.get(name))}")
        self.counts["steps compared"] += len(mine)

    def run(self):
        begin = time.monotonic()
        try:
            self.run_until(begin, begin + self.args.seconds)
        finally:  # also of one that is ended by SIGTERM
            self.report(time.monotonic() - begin)

    def run_until(self, begin, end):
        names = list(VARIANTS)[:self.args.variants]
        number = 0
        while not self.is_over(end):
            name = names[number % len(names)]
            self.settings = VARIANTS[name]
            self.undisturbed(name)
            before = len(self.findings)
            self.round(number, name, end)
            if len(self.findings) > before and self.args.keep:
                shutil.copytree(self.place.path("disk"), os.path.join(self.args.keep, f"round-{number}"), symlinks=True, dirs_exist_ok=True)
                shutil.copy(self.place.path("log"), os.path.join(self.args.keep, "log"))
            for entry in os.listdir(self.place.path("disk")):
                shutil.rmtree(self.place.path("disk", entry))
            number += 1
            print(f"{time.monotonic() - begin:.0f} s: {number} rounds, {len(self.findings)} findings", flush=True)

    def report(self, seconds):
        print(f"\n{seconds:.0f} s, seed {self.args.seed}, {self.args.ranks} ranks, {self.args.steps} steps a run")
        for what, count in sorted(self.counts.items()):
            print(f"  {what:45} {count}")
        for what, count in zip(("starts after the first of a script", "states saved elsewhere and moved home"), self.place.told()):
            print(f"  {what:45} {count}")
        print(f"  {'findings':45} {len(self.findings)}")
        print("\nmemory and descriptors of processes that lived longest:")
        for where, who, trend in sorted(self.trends, key=lambda entry: -entry[2].seconds)[:24]:
            print(f"  {where}, {who}: {trend.seconds:.0f} s, at most {trend.peak >> 20} MiB and {trend.most_descriptors} descriptors; second half: "
                  f"{trend.grown / 1024:+.0f} KiB, {trend.slope / 1024 * 60:+.1f} KiB a minute")
        for finding in self.findings:
            print("FOUND", finding)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=os.path.abspath)
    for name, default in (("seconds", 600.0), ("every", 5.0)):
        parser.add_argument("--" + name, type=float, default=default)
    for name, default in (("steps", 2000), ("variants", len(VARIANTS)), ("ranks", 4), ("seed", 0), ("faults", 0), ("failing-calls", 0)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", type=os.path.abspath)
    args = parser.parse_args()
    mount_apart()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))  # leaves nothing either
    subprocess.run(["mount", "-t", "tmpfs", "none", "/dev/shm"], check=True)  # nobody else's files
    with tempfile.TemporaryDirectory(prefix="zero-soak-") as folder:
        place = Place(args, folder)
        soak = Soak(args, place)
        try:
            soak.run()
        finally:
            send(place.survivors(), signal.SIGKILL)
            if args.keep:
                os.makedirs(args.keep, exist_ok=True)
                shutil.copy(place.path("log"), os.path.join(args.keep, "log"))
            subprocess.run(["umount", "--lazy", place.path("disk")])
        sys.exit(bool(soak.findings))


if __name__ == "__main__":
    main()
