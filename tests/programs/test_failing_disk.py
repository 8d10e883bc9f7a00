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
import sys
import time

from checks import arguments, environment, run_checks
from test_checkpoints import Place, ranks_of

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "soak"))
from faults import failing_calls

ERRORS = (errno.EIO, errno.ESTALE, errno.EMFILE, errno.EACCES, errno.ENOMEM)
OUT = "failing-out"
OPTIONS = ("--set", "training.steps=3", "--set", "checkpoint.interval=1", "--set", "training.global_batch_size=1")


class FailingPlace(Place):
    def train(self, *options, out=OUT, below=None, **plan):
        """One rank; (exit code, what it said, calls on the output directory or on `below`). plan: at=3, reason=errno.EIO, for_good=1, ..."""
        failing = failing_calls(self.folder, below=self.path(below or out), count=self.path("count"), **plan)
        done = subprocess.run([self.bin + "/zero_train", "config.toml", "--set", f"job.output_dir={out}", *OPTIONS, *options], cwd=self.folder, capture_output=True, text=True,
                              timeout=120, env=environment(TMPDIR=self.folder, **failing))
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
    """Makes every stride-th call of a run fail, which begin() prepares and gives the options of. Only --overwrite removes what was there."""
    options = begin()
    code, said, calls = place.train(*options)
    assert code == 0 and calls > 100, (code, said, calls)
    overwrites, cases = "--overwrite" in options, 0
    for at in range(0, calls, args.stride):
        shutil.rmtree(place.path(OUT), ignore_errors=True)
        begin()
        before, newest = place.tree(), place.newest()
        plan = {"at": at, "reason": ERRORS[at // args.stride % len(ERRORS)], "for_good": cases % 2}
        cases += 1
        code, said, _ = place.train(*options, **plan)
        told = (plan, code, said)
        assert code in (0, 1, 2), told
        assert code != 2 or place.tree() == before, ("a start that was refused changed files", told)
        written = [int(step) for step in re.findall(r"checkpoint \S*step-(\d+), written", said)]
        assert place.newest() >= max([-1 if overwrites else newest, *written]), ("a checkpoint is lost", told, place.checkpoints())
        assert not any("damaged" in name for name in place.checkpoints()), told
        lines = [line["step"] for line in place.metrics(OUT)]
        assert lines == sorted(set(lines)), ("lines are gone or there twice", lines, told)
        # The disk works again.
        again = ("--overwrite",) if overwrites else ("--resume",) if os.path.exists(place.path(OUT, "config.toml")) else ()
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


def check_overwritten_run(place, args):
    """The former run goes as a whole or not at all by a start that is refused, and the next one needs no other words."""
    code, said, _ = place.train(out="undisturbed")
    assert code == 0, said

    def begin():
        shutil.rmtree(place.path(OUT), ignore_errors=True)
        shutil.copytree(place.path("undisturbed"), place.path(OUT))
        return ("--overwrite",)

    walk(place, args, begin)


def check_data_go_away(place, args):
    """Ids that cannot be read any more end a run that has trained as a failure: a supervisor starts it again."""
    code, said, reads = place.train(out="undisturbed", below="tokens.bin", calls="read")
    assert code == 0 and reads > 3, (code, said, reads)  # the last one is of the trial after the last step, which only warns
    code, said, _ = place.train(below="tokens.bin", calls="read", at=reads - 2, for_good=1, reason=errno.EIO)
    assert code == 1 and "tokens.bin: " in said and os.strerror(errno.EIO) in said and place.newest() >= 1, (code, said)
    code, said, _ = place.train("--resume")
    assert code == 0, said
    place.expect_same(OUT, "undisturbed")


def check_many_files_without_an_answer(place, args):
    """Of a folder whose files cannot be looked at, the first alone is tried again and again."""
    os.makedirs(place.path("shards"))
    names = [f"shards/{number}.bin" for number in range(20)]
    for name in names:
        shutil.copy(place.path("tokens.bin"), place.path(name))
    code, said, calls = place.train("--set", f"data.train={names}".replace("'", '"'), below="shards", at=0, for_good=1, reason=errno.EIO)
    assert code == 2 and "shards/0.bin: cannot be looked at: " in said and "shards/1.bin: " not in said and 3 < calls < 20, (code, said, calls)


def check_lock_without_an_answer(place, args):
    """A lock that fails is no file system without locks: the start is refused, or takes it when the disk is back."""
    for for_good, expected in ((1, 2), (0, 0)):
        code, said, calls = place.train(calls="lock", at=0, for_good=for_good, reason=errno.EIO)
        assert code == expected and "has no locks" not in said and calls > 1, (code, said, calls)
    code, said, calls = place.train("--overwrite", calls="lock", at=0, for_good=1, reason=errno.ENOLCK)
    assert code == 0 and "has no locks" in said and calls == 1, (code, said, calls)


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
        failing = failing_calls(place.folder, below=place.path(OUT), one_in=200, seed=args.seed * 1000 + starts, reason=args.random.choice(ERRORS))
        begun = os.path.exists(place.path(OUT, "config.toml"))
        os.environ.update(failing)
        process = place.start(*options, *(("--resume",) if place.newest() >= 0 else ("--overwrite",) if begun else ()), out=OUT)
        for name in failing:
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
    args = arguments(__doc__, stride=61, kills=6, seed=1)
    args.random = random.Random(args.seed)
    run_checks(args, globals(), lambda check, folder: check(FailingPlace(folder, args.bin, args.data), args))


if __name__ == "__main__":
    main()
