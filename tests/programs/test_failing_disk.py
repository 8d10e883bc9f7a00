"""Runs zero_train on a disk whose calls fail, those that only look included, with the errors of file servers and of nodes that run
short. No checkpoint that was written is lost or renamed, no line of the records goes, and a start that is refused changes nothing.

usage: test_failing_disk.py BIN TESTS_DATA [-k NAME] [--stride N] [--kills N] [--seed N]        exits 1 when something is wrong
       --stride 1 makes every call fail in turn
"""
import errno
import os
import random
import re
import shutil
import signal
import subprocess
import time

from checks import arguments, environment, run_checks
from test_checkpoints import Place, ranks_of

ERRORS = (errno.EIO, errno.ESTALE, errno.EMFILE, errno.EACCES, errno.ENOMEM)
OUT = "failing-out"
OPTIONS = ("--set", "training.steps=3", "--set", "checkpoint.interval=1", "--set", "training.global_batch_size=1")


class FailingPlace(Place):
    """A Place whose programs run with the library that makes calls fail."""

    def __init__(self, folder, bin, data):
        super().__init__(folder, bin, data)
        self.library = self.path("failing_calls.so")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "failing_calls.c")
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", self.library, source, "-ldl"], check=True)

    def train(self, *options, out=OUT, **plan):
        """One rank; (exit code, what it said, calls on the output directory). plan: at=3, with_=errno.EIO, for_good=1, ..."""
        words = {"FAIL_" + key.upper().rstrip("_"): str(value) for key, value in plan.items()}
        done = subprocess.run([self.bin + "/zero_train", "config.toml", "--set", f"job.output_dir={out}", *OPTIONS, *options], cwd=self.folder, capture_output=True, text=True,
                              timeout=120, env=environment(LD_PRELOAD=self.library, FAIL_NAME=out, FAIL_COUNT=self.path("count"), TMPDIR=self.folder, **words))
        with open(self.path("count")) as file:
            return done.returncode, done.stdout + done.stderr, int(file.read())

    def tree(self, out=OUT):
        """Every file below the output directory with its content."""
        found = {}
        for base, _, names in os.walk(self.path(out)):
            for name in names:
                with open(os.path.join(base, name), "rb") as file:
                    found[os.path.relpath(os.path.join(base, name), self.path(out))] = file.read()
        return found

    def newest(self, out=OUT):
        return max((int(name[5:]) for name in self.checkpoints(out) if re.fullmatch(r"step-\d{8}", name)), default=-1)


def walk(place, args, begin):
    """Makes every stride-th call of a run fail, which begin() prepares and gives the options of."""
    options = begin()
    code, said, calls = place.train(*options)
    assert code == 0 and calls > 100, (code, said, calls)
    losses, cases = [], 0
    for at in range(0, calls, args.stride):
        shutil.rmtree(place.path(OUT), ignore_errors=True)
        begin()
        before, newest = place.tree(), place.newest()
        plan = {"at": at, "with_": ERRORS[at // args.stride % len(ERRORS)], "for_good": cases % 2}
        cases += 1
        code, said, _ = place.train(*options, **plan)
        told = (plan, code, said)
        assert code in (0, 1, 2), told
        assert code != 2 or place.tree() == before, ("a start that was refused changed files", told)
        written = [int(step) for step in re.findall(r"checkpoint \S*step-(\d+), written", said)]
        assert place.newest() >= max([newest, *written]), ("a checkpoint is lost", told, place.checkpoints())
        assert not any("damaged" in name for name in place.checkpoints()), told
        lines = [line["step"] for line in place.metrics(OUT)]
        assert lines == sorted(set(lines)), ("lines are gone or there twice", lines, told)
        # The disk works again.
        again = ("--resume",) if os.path.exists(place.path(OUT, "config.toml")) else ()
        code, said, _ = place.train(*again)
        if place.newest() < 0:
            assert code == 2 and "--overwrite" in said, (told, code, said)
            continue
        assert code == 0, (told, code, said)
        place.expect_same(OUT, "undisturbed")
    print(f"{calls} calls, {cases} failures tried", end=", ")


def check_new_run(place, args):
    code, said, _ = place.train(out="undisturbed")
    assert code == 0, said
    walk(place, args, lambda: ())


def check_resumed_run(place, args):
    """After a kill with two checkpoints, a line beyond the newer one and an unfinished one."""
    code, said, _ = place.train(out="undisturbed")
    assert code == 0, said

    def begin():
        shutil.copytree(place.path("undisturbed"), place.path(OUT))
        shutil.rmtree(place.path(OUT, "model"))
        os.rename(place.path(OUT, "checkpoints/step-00000003"), place.path(OUT, "checkpoints/step-00000003.tmp"))
        os.remove(place.path(OUT, "checkpoints/step-00000003.tmp/manifest.json"))
        return ("--resume",)

    walk(place, args, begin)


def check_random(place, args):
    """Ranks are killed again and again while one call in 200 fails: what comes out is the undisturbed run."""
    steps = max(40, 4 * args.kills)
    options = ("--set", f"training.steps={steps}", "--set", "checkpoint.keep=3")
    code, said = place.run(*options, out="undisturbed")
    assert code == 0, said
    kills = starts = failed = 0
    while True:
        starts += 1
        assert starts < 50 * args.kills, (starts, kills, said)
        os.environ.update(LD_PRELOAD=place.library, FAIL_NAME=OUT, FAIL_ONE_IN="200", FAIL_SEED=str(args.seed * 1000 + starts), FAIL_WITH=str(args.random.choice(ERRORS)))
        begun = os.path.exists(place.path(OUT, "config.toml"))
        process = place.start(*options, *(("--resume",) if place.newest() >= 0 else ("--overwrite",) if begun else ()), out=OUT)
        for name in ("LD_PRELOAD", "FAIL_NAME", "FAIL_ONE_IN", "FAIL_SEED", "FAIL_WITH"):
            del os.environ[name]
        newest = place.newest()
        if kills < args.kills:
            wanted = newest + args.random.randint(1, 4)
            while process.poll() is None and place.newest() < wanted:
                time.sleep(0.005)
            time.sleep(args.random.random() * 0.05)
            if alive := ranks_of(process):
                os.kill(args.random.choice(alive), signal.SIGKILL)
                kills += 1
        code, said = place.wait(process, patience=120 + steps)
        assert place.newest() >= newest, (newest, place.checkpoints(), said)
        assert not any("damaged" in name for name in place.checkpoints()), said
        failed += code in (1, 2)
        if code == 0:
            break
    place.expect_same(OUT, "undisturbed")
    print(f"{kills} kills, {starts} starts", end=", ")


def main():
    args = arguments(__doc__, stride=11, kills=10, seed=1)
    args.random = random.Random(args.seed)
    run_checks(args, globals(), lambda check, folder: check(FailingPlace(folder, args.bin, args.data), args))


if __name__ == "__main__":
    main()
