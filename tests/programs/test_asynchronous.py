"""What checkpoint.asynchronous makes of checkpoints: written behind the steps they hold what the others do; the run's ends wait for
them, and who cannot have them is told.

usage: test_asynchronous.py BIN TESTS_DATA [-k NAME] [--seed N]        exits 1 when something is wrong
"""
import os
import re
import shutil
import signal
import time

from test_checkpoints import ranks_of, run_in_places, wait_for_steps

BEHIND = ("--set", "checkpoint.asynchronous=true")


def check_what_they_hold(place, args):
    """What the others do."""
    interval = ("--set", "training.steps=30", "--set", "checkpoint.keep=100")
    for more in ((), ("--set", "zero.stage=0", "--set", "training.precision=fp16"), ("--set", "zero.stage=1", "--set", "lora.r=2"),
                 ("--set", "zero.stage=2", "--set", "zero.shard_degree=2", "--set", "optimizer.name=adafactor")):
        options, ranks = (*interval, *more), 4 if "zero.shard_degree=2" in more else 2
        kind = "adapter" if "lora.r=2" in more else "model"
        for out, how in (("waited", ()), ("behind", BEHIND)):
            code, said = place.run(*options, *how, out=out, ranks=ranks)
            assert code == 0, said
            lines = re.findall(r"^checkpoint .*step-(\d+), written in [\d.]+ s(, of which the run waited [\d.]+ s)?$", said, re.M)
            assert [int(step) for step, _ in lines] == list(range(1, 31)), said
            assert [bool(words) for _, words in lines] == [out == "behind"] * 29 + [False], said
        for step in range(1, 31):
            for rank in range(ranks):
                name = f"checkpoints/step-{step:08d}/rank-{rank:05d}.states"
                with open(place.path("waited", name), "rb") as a, open(place.path("behind", name), "rb") as b:
                    assert a.read() == b.read(), (more, name)
        assert place.metrics("behind") == place.metrics("waited")
        shutil.rmtree(place.path("waited"))
        shutil.copytree(place.path("behind"), place.path("resumed"))
        for step in range(8, 31):
            shutil.rmtree(place.path(f"resumed/checkpoints/step-{step:08d}"))
        code, said = place.run(*options, *BEHIND, "--resume", out="resumed", ranks=ranks)
        assert code == 0 and "resumed after step 7," in said, said
        for name in os.listdir(place.path("behind", kind)):
            with open(place.path("behind", kind, name), "rb") as a, open(place.path("resumed", kind, name), "rb") as b:
                assert a.read() == b.read(), (more, name)
        shutil.rmtree(place.path("behind"))
        shutil.rmtree(place.path("resumed"))


def check_complete(place, args):
    """When it is written, not when the next one begins."""
    process = place.start("--set", "training.steps=1000000", "--set", "checkpoint.interval=200", *BEHIND)
    assert wait_for_steps(place, process, 200)
    while place.checkpoints() != ["step-00000200"] and process.poll() is None:
        assert len(place.metrics()) < 390, place.checkpoints()
        time.sleep(0.01)
    os.kill(ranks_of(process)[0], signal.SIGUSR1)
    code, said = place.wait(process)
    assert code == 75 and place.checkpoints() == ["step-00000200", f"step-{len(place.metrics()):08d}"], (code, said)


def check_stops(place, args):
    """While one is written."""
    code, said = place.run("--set", "checkpoint.interval=0", "--set", "training.steps=80", out="undisturbed")
    assert code == 0, said
    for number in (signal.SIGUSR1, signal.SIGTERM):
        process = place.start("--set", "training.steps=80", *BEHIND)
        assert wait_for_steps(place, process, args.random.randint(1, 40))
        os.kill(ranks_of(process)[0], number)
        code, said = place.wait(process)
        steps = len(place.metrics())
        assert code == 75 and place.checkpoints()[-1] == f"step-{steps:08d}" and len(place.checkpoints()) == min(2, steps), (code, said)
        code, said = place.run("--set", "training.steps=80", *BEHIND, "--resume")
        assert code == 0 and f"resumed after step {steps}," in said, said
        place.expect_same("out", "undisturbed")
        shutil.rmtree(place.path("out"))


def check_by_the_clock(place, args):
    """And ends ahead of a limit."""
    code, said = place.run("--set", "checkpoint.interval=0", "--set", "checkpoint.every_minutes=0.001", "--set", "job.time_limit=00:03", "--set", "training.steps=1000000", *BEHIND)
    assert code == 75 and "of which the run waited" in said and place.checkpoints()[-1] == f"step-{len(place.metrics()):08d}", (code, said)


def check_who_waits(place, args):
    """States that lie on disk; and where there is nothing to write nobody does."""
    os.makedirs(place.path("nvme"), exist_ok=True)
    code, said = place.run("--set", "training.steps=3", "--set", "offload.optimizer=nvme", "--set", "offload.nvme_dir=nvme", *BEHIND)
    assert code == 0 and said.count("training waits until a checkpoint is written") == 1 and "states lie on disk" in said and "of which the run waited" not in said, said
    code, said = place.run("--set", "training.steps=3", "--set", "checkpoint.interval=0", *BEHIND, out="none")
    assert code == 0 and "checkpoint" not in said, said


if __name__ == "__main__":
    run_in_places(globals(), __doc__)
