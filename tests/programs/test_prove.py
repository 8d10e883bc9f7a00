"""Runs zero_prove as a user does: on a configuration whose layouts agree, and on ranks that are made to compute something else.

usage: test_prove.py BIN TESTS_DATA [-k NAME]        exits 1 when something is wrong
"""
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time

from checks import ModelPlace, arguments, environment, mpirun, run_checks
from test_train_script import children_of

CONFIG = {
    "job": {"output_dir": "out"},
    "model": {"path": "model"},
    "data": {"train": ["tokens.bin"]},
    "training": {"steps": 40, "seq_len": 24, "local_batch_size": 2, "global_batch_size": 8, "precision": "bf16", "device": "cpu"},
    "lr_scheduler": {"warmup_steps": 10},
}


class Place(ModelPlace):
    def __init__(self, folder, bin, data):
        super().__init__(folder, bin, data, CONFIG)
        os.mkdir(self.path("scratch"))

    def prove(self, *options, path=None, before=(), left=()):
        """(exit code, what it said)"""
        command = [*before, os.path.join(self.bin, "zero_prove"), "config.toml", "--scratch", "scratch", *options]
        more = {"PATH": f"{path}:{os.environ['PATH']}"} if path else {}
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=240, env=environment(**more))
        assert sorted(os.listdir(self.path("scratch"))) == sorted(left), "a temporary folder was left"
        assert not os.path.exists(self.path("out")), "the output directory was touched"
        return done.returncode, done.stdout + done.stderr

    def layouts(self, *options, **more):
        """(exit code, {name: verdict})"""
        code, said = self.prove(*options, "--json", "verdicts.json", **more)
        with open(self.path("verdicts.json")) as file:
            return code, {layout["layout"]: layout for layout in json.load(file)["layouts"]}, said

    def mpirun_with(self, *words, code=None):
        """The folder of an mpirun that gives the ranks more words, or ends with a code."""
        folder = self.path("path")
        os.makedirs(folder, exist_ok=True)
        script = os.path.join(folder, "mpirun")
        with open(script, "w") as file:
            file.write("#!/bin/sh\n" + (f"echo the ranks are ill >&2; exit {code}\n" if code else f'exec {shutil.which("mpirun")} "$@" {" ".join(words)}\n'))
        os.chmod(script, os.stat(script).st_mode | stat.S_IXUSR)
        return folder


def check_agreement(place):
    code, layouts, said = place.layouts("--only", "states on disk", "--only", "resumed", "--only", "fp32, stage 3")
    assert code == 0, said
    bits = {name for name, layout in layouts.items() if layout["verdict"] == "equal to the bit"}
    assert {"stage 3", "states on disk", "resumed"} <= bits, said
    assert layouts["reference"]["verdict"] == "reference"
    rounded = layouts["fp32, stage 3"]
    assert rounded["verdict"] == "equal within rounding" and 0 < rounded["of_bound"] < 1 and rounded["against"] == "probe", rounded
    assert rounded["nearest"].startswith("step "), rounded
    assert "all 6 layouts agree" in said, said
    code, layouts, said = place.layouts("--only", "stage 0", "--set", "training.steps=3", "--set", "lr_scheduler.warmup_steps=0")
    assert code == 0 and ", 3 steps of " in said, said


def check_differences(place):
    for words, phase in [("--set training.seed=7", "loss"), ("--set training.max_norm=0.01", "update"), ("--set optimizer.lr=0.01", "update")]:
        code, layouts, said = place.layouts("--only", "stage 0", path=place.mpirun_with(words))
        assert code == 1 and "DIFFERENT" in said, said
        parts = layouts["stage 0"]["parts"]
        assert (parts["step"], parts["phase"]) == (1, phase), (words, parts)
        assert phase == "loss" or parts["tensor"], parts


def check_reproducible(place):
    """All layouts owe the reference's bits; ranks that sum as ever are within rounding, and yet another result."""
    asked = ("--ranks", "4", "--set", "job.reproducible=ranks", "--only", "stage 2", "--only", "stage 3 on 4 ranks", "--only", "fp32, hybrid")
    code, layouts, said = place.layouts(*asked)
    assert code == 0 and {layout["verdict"] for layout in layouts.values()} == {"reference", "equal to the bit"}, said
    assert layouts["stage 3 on 4 ranks"]["against"] == "reference" and layouts["fp32, hybrid"]["against"] == "probe", said
    code, layouts, said = place.layouts(*asked, path=place.mpirun_with("--set job.reproducible=none"))
    assert code == 1, said
    for name, against in [("stage 2", "reference"), ("stage 3 on 4 ranks", "reference"), ("fp32, hybrid", "probe")]:
        assert layouts[name]["verdict"] == "DIFFERENT" and layouts[name]["against"] == against, said


def check_runs_that_go_back(place):
    """There are no checkpoints to go back to in so few steps."""
    code, layouts, said = place.layouts("--set", "training.on_nonfinite=rollback", "--set", "checkpoint.interval=2", "--only", "stage 1")
    assert code == 0 and layouts["stage 1"]["verdict"] == "equal to the bit", said


def check_failing_ranks(place):
    code, layouts, said = place.layouts("--only", "stage 1", "--first", path=place.mpirun_with(code=3))
    assert code == 1, said
    assert list(layouts) == ["reference", "stage 0"], layouts
    assert layouts["stage 0"]["verdict"] == "FAILED" and "the ranks are ill" in layouts["stage 0"]["words"], layouts


def runs_of(proof):
    """Process ids of the proof's runs that have left its process group, so that killing the group spares them."""
    return [pid for pid in children_of(proof, "zero_prove") if os.getpgid(pid) == pid]


def check_killed(place):
    """What a proof that was killed has left goes when its run has ended, also where its whole process group is killed; what others have there stays."""
    others = {"zero-proof-report", "zero-prove-report"}
    for name in others:
        os.mkdir(place.path("scratch", name))
    place.config({**CONFIG, "training": {**CONFIG["training"], "steps": 1_000_000}})
    command = [os.path.join(place.bin, "zero_prove"), "config.toml", "--scratch", "scratch", "--steps", "1000000"]
    killed = subprocess.Popen(command, cwd=place.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(), start_new_session=True)
    end = time.time() + 60
    while not children_of(killed.pid, "sh") or not (runs := runs_of(killed.pid)):  # the shell watches the folder
        assert killed.poll() is None and time.time() < end
        time.sleep(0.01)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    assert len(os.listdir(place.path("scratch"))) == 1 + len(others), "removed under a run"
    for pid in runs:
        os.kill(pid, signal.SIGKILL)
    while set(os.listdir(place.path("scratch"))) != others:
        assert time.time() < end, "a temporary folder was left"
        time.sleep(0.01)
    place.config(CONFIG)
    code, said = place.prove("--only", "stage 0", left=others)
    assert code == 0, said


def check_list(place):
    code, said = place.prove("--list", "--ranks", "4")
    assert code == 0 and len(said.splitlines()) == 29 and "context 2" in said and "pipeline 2 of 4 ranks" in said and "tensor 2 of 4 ranks" in said, said
    code, said = place.prove("--list", "--only", "6")
    assert code == 0 and [line.split()[0] for line in said.splitlines()] == ["1", "3", "6"] and "stage 3" in said.splitlines()[-1], said
    code, said = place.prove("--list", "--full", "--ranks", "4")
    assert code == 0 and len(said.splitlines()) > 24, said
    code, said = place.prove("--list", "--ranks", "2", "--set", "training.precision=fp32")
    assert code == 0 and "4 ranks" not in said and "3 ranks" not in said, said


def check_refusals(place):
    for options, why in [(["--steps", "1"], "must be at least 2"),
                         (["--only", "stage 4"], "there is no such layout"),
                         (["--set", "training.stepz=3"], "unknown key"),
                         (["--set", "training.global_batch_size=1", "--set", "training.local_batch_size=1"], "1 sequence a step"),
                         (["--set", "training.global_batch_size=7"], "7 sequences a step cannot be computed in other ways on up to"),
                         (["--json", "nowhere/verdicts.json"], "nowhere/verdicts.json: cannot be written"),
                         (["--set", "training.steps=1", "--set", "lr_scheduler.warmup_steps=0"], "training.steps=1 must be at least 2"),
                         (["--set", "model.path=nowhere"], " is refused: --set model.path=nowhere: "),
                         (["--set", "optimizer.lr=-1"], "optimizer")]:
        code, said = place.prove(*options)
        assert code == 2 and why in said, (options, code, said)
    epoch = {key: value for key, value in CONFIG["training"].items() if key != "steps"}
    place.config({**CONFIG, "training": {**epoch, "epochs": 1, "global_batch_size": 64}, "lr_scheduler": {}})
    code, said = place.prove("--steps", "1000")
    assert code == 2 and re.search(r"too short: the run ended after \d+ of 1000 steps; --steps", said), (code, said)
    code, said = place.prove(before=mpirun(2))
    assert code == 2 and "without mpirun" in said, said


def main():
    args = arguments(__doc__)
    run_checks(args, globals(), lambda check, folder: check(Place(folder, args.bin, args.data)))


if __name__ == "__main__":
    sys.exit(main())
