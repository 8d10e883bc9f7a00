"""Stops runs of zero_train as users, terminals and batch systems do, and reads what they say to the end: a checkpoint of the last
step, one message, one stream.

usage: test_stopping.py BIN TESTS_DATA [-k NAME] [--seed N]        exits 1 when something is wrong
"""
import os
import re
import shutil
import signal
import subprocess
import time

from test_checkpoints import DEADLINE_SECONDS, ranks_of, run_in_places, wait_for_steps, wait_for_words

ENDLESS = ("--set", "training.steps=100000", "--set", "checkpoint.interval=0")


def say(place, command, environment=(), **more):
    """A process that leads a group of its own, as what a terminal starts does; its messages go to a file."""
    with open(place.path("said"), "w") as said:
        return subprocess.Popen(command, cwd=place.folder, stdout=said, stderr=subprocess.STDOUT, start_new_session=True,
                                env=dict({**os.environ, "OMP_NUM_THREADS": "1", "ZERO_BIN": place.bin, **dict(environment)}), **more)


def say_by_script(place, *options, environment=()):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "train")
    return say(place, [script, "config.toml", "-np", "2", "--", *options], environment)


def expect_stopped(place, process):
    """The end of a run that was stopped: our words are the last ones, and its checkpoint is that of its last step."""
    code, said = place.wait(process)
    assert code == 75, (code, said)
    assert said.rstrip().splitlines()[-1].startswith("stopped on request after step"), said
    assert "asked to stop: a checkpoint follows" in said and "-----" not in said and "mpirun" not in said, said
    assert place.checkpoints() == [f"step-{len(place.metrics()):08d}"], (place.checkpoints(), len(place.metrics()))


def rank_of(place, number):
    """Process id of a rank that scripts/train started."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ") as file:
                environment = file.read().split("\0")
            if f"PWD={place.folder}" in environment and f"OMPI_COMM_WORLD_RANK={number}" in environment:
                return int(name)
        except OSError:
            continue
    raise AssertionError(f"no rank {number}")


def check_signals(place, args):
    code, said = place.run("--set", "checkpoint.interval=0", "--set", "training.steps=80", out="undisturbed")
    assert code == 0 and place.checkpoints("undisturbed") == [], said
    options = ("--set", "checkpoint.interval=0", "--set", "training.steps=80")
    for number, to in ((signal.SIGTERM, "a rank"), (signal.SIGUSR1, "a rank"), (signal.SIGUSR1, "mpirun"), (signal.SIGTERM, "all ranks")):
        process = place.start(*options)
        assert wait_for_steps(place, process, args.random.randint(1, 40))
        targets = {"mpirun": [process.pid], "all ranks": ranks_of(process), "a rank": ranks_of(process)[:1]}[to]
        for target in targets:
            os.kill(target, number)
        code, said = place.wait(process)
        assert code == 75, (to, code, said)
        assert said.count("stopped on request after step") == 1, said
        assert place.checkpoints() == [f"step-{len(place.metrics()):08d}"], (place.checkpoints(), len(place.metrics()))
        code, said = place.run(*options, "--resume")
        assert code == 0, said
        place.expect_same("out", "undisturbed")
        shutil.rmtree(place.path("out"))


def check_within_validation(place, args):
    """A stop does not wait for a validation, that of the last step neither: nothing is lost, and the run that goes on validates that step."""
    with open(place.path("tokens.bin"), "rb") as file, open(place.path("held_out.bin"), "wb") as held_out:
        held_out.write(file.read() * 8)
    options = ("--set", "training.steps=4", "--set", 'data.validation=["held_out.bin"]', "--set", "training.validation_interval=2", "--set", "checkpoint.interval=0")
    code, said = place.run(*options, out="undisturbed")
    assert code == 0 and ["validation_loss" in line for line in place.metrics("undisturbed")] == [False, True, False, True], said
    for number, to, steps in ((signal.SIGUSR1, "mpirun", 2), (signal.SIGTERM, "a rank", 4)):
        process = place.start(*options)
        assert wait_for_steps(place, process, steps - 1)
        time.sleep(0.1)
        os.kill(process.pid if to == "mpirun" else ranks_of(process)[0], number)
        code, said = place.wait(process)
        assert code == 75 and f"stopped on request after step {steps} of 4, whose validation is left: go on with --resume" in said, (code, said)
        assert place.checkpoints() == [f"step-{steps:08d}"] and len(place.metrics()) == steps - 1 and not os.path.exists(place.path("out/model")), said
        code, said = place.run(*options, "--resume")
        assert code == 0 and ("all 4 steps were done: the last one's validation and the result follow" in said) == (steps == 4), said
        place.expect_same("out", "undisturbed")
        shutil.rmtree(place.path("out"))
    limit = ("--set", "job.time_limit=00:00", "--set", "training.validation_interval=1", "--set", "training.steps=1")
    code, said = place.run(*options, *limit)
    assert code == 75 and "stopped ahead of job.time_limit after step 1 of 1, whose validation is left" in said and place.metrics() == [], (code, said)
    once, other = ("--resume", "--set", "training.steps=1"), ("--set", "optimizer.lr=0.125")  # the second checkpoint of the step has the rate that was accepted
    code, said = place.run(*options, *limit, *once, *other, "--accept-change", "optimizer.lr")
    assert code == 75 and "whose validation is left" in said and place.metrics() == [], (code, said)
    shutil.copytree(place.path("out"), place.path("without"))
    code, said = place.run(*options, *once, *other)
    assert code == 0 and len(place.metrics()) == 1 and "validation_loss" in place.metrics()[0], said
    code, said = place.run(*options, *once, *other)
    assert code == 0 and len(place.metrics()) == 1 and "the one step was done: only the result is written anew" in said, said
    code, said = place.run(*options, *once, *other, "--set", "training.validation_interval=0", out="without")
    assert code == 0 and "the run was stopped before the validation of step 1, which is left out: training.validation_interval is 0 now" in said, said
    assert len(place.metrics("without")) == 1 and "validation_loss" not in place.metrics("without")[0], said


def check_second_signal(place, args):
    process = place.start("--set", "training.steps=100000", "--set", "checkpoint.interval=0")
    assert wait_for_steps(place, process, 2)
    first, other = ranks_of(process)[:2]
    os.kill(other, signal.SIGSTOP)  # the step does not end
    os.kill(first, signal.SIGTERM)
    time.sleep(2.1)
    assert process.poll() is None
    os.kill(first, signal.SIGTERM)
    code, said = place.wait(process)
    assert code not in (0, 75), said


def check_repeated_signals(place, args):
    """What arrives within a second of the first signal is the same request, also while the process ends."""
    for gap in (0.1, 0.3):
        process = place.start("--set", "training.steps=100000", "--set", "checkpoint.interval=0")
        assert wait_for_steps(place, process, 2)
        os.kill(process.pid, signal.SIGUSR1)
        time.sleep(gap)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGUSR1)
        code, said = place.wait(process)
        assert code == 75, (gap, code, said)
        shutil.rmtree(place.path("out"))


def check_interrupts(place, args):
    """Ctrl-C (SIGINT to the whole foreground group), a lost terminal (SIGHUP) and SIGTERM, while a step takes three seconds."""
    starts = {"alone": lambda: say(place, [place.bin + "/zero_train", "config.toml", *ENDLESS]), "script": lambda: say_by_script(place, *ENDLESS)}
    for how, number in (("alone", signal.SIGINT), ("alone", signal.SIGHUP), ("script", signal.SIGINT), ("script", signal.SIGHUP), ("script", signal.SIGTERM)):
        process = starts[how]()
        assert wait_for_steps(place, process, 1)
        sleeper = rank_of(place, 1) if how == "script" else process.pid
        os.kill(sleeper, signal.SIGSTOP)
        os.killpg(process.pid, number)
        time.sleep(3)
        os.kill(sleeper, signal.SIGCONT)
        expect_stopped(place, process)
        shutil.rmtree(place.path("out"))
    endless_step = (*ENDLESS, "--set", "training.global_batch_size=40000")
    for how in starts:  # a second Ctrl-C
        process = say_by_script(place, *endless_step) if how == "script" else say(place, [place.bin + "/zero_train", "config.toml", *endless_step])
        assert wait_for_words(place, process, " epochs of ")
        time.sleep(1)
        os.killpg(process.pid, signal.SIGINT)
        assert wait_for_words(place, process, "asked to stop")
        time.sleep(0.3)
        os.killpg(process.pid, signal.SIGINT)
        code, said = place.wait(process)
        assert code not in (0, 75) and place.checkpoints() == [] and "-----" not in said, (how, code, said)
        if how == "script":
            assert said.rstrip().splitlines()[-1] == "train: ended at once, as asked; -- --resume goes on from the newest checkpoint, where there is one", said
        shutil.rmtree(place.path("out"))
    process = say(place, ["nohup", place.bin + "/zero_train", "config.toml", "--set", "training.steps=20"], stdin=subprocess.DEVNULL)
    assert wait_for_steps(place, process, 1)
    os.killpg(process.pid, signal.SIGHUP)
    code, said = place.wait(process)
    assert code == 0 and "asked to stop" not in said, said


def check_last_words(place, args):
    """What scripts/train leaves on the screen: zero_train's reason, one line for a killed rank, and mpirun's real errors."""
    process = say_by_script(place, *ENDLESS)
    assert wait_for_steps(place, process, 3)
    os.kill(rank_of(place, 1), signal.SIGKILL)
    code, said = place.wait(process)
    assert code == 137 and "-----" not in said and said.count("train: rank 1 on ") == 1 and "killed by signal 9 (SIGKILL)" in said and "--resume" in said, (code, said)
    code, said = place.wait(say_by_script(place, "--set", "zero.stage=7", "--overwrite"))
    assert code == 2 and said.rstrip().splitlines()[-1].startswith("error: ") and "-----" not in said, (code, said)
    code, said = place.wait(say_by_script(place, environment={"ZERO_BIN": "/nowhere"}))
    assert code not in (0, 75) and "/nowhere/zero_train" in said, (code, said)


def check_closed_pipe(place, args):
    """The log's reader ends with the same Ctrl-C: the checkpoint is written all the same."""
    reader, writer = os.pipe()
    command = [place.bin + "/zero_train", "config.toml", "--set", "training.steps=100000", "--set", "checkpoint.interval=0"]
    process = subprocess.Popen(command, cwd=place.folder, stdout=writer, stderr=writer, env=dict(os.environ, OMP_NUM_THREADS="1"))
    os.close(writer)
    assert wait_for_steps(place, process, 2)
    os.close(reader)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=DEADLINE_SECONDS) == 75
    assert len(place.checkpoints()) == 1


def check_log(place, args):
    """What belongs together is on one stream, from the table to the closing lines; what a run says of itself is true."""
    command = [place.bin + "/zero_train", "config.toml", "--set", "training.steps=2"]
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    done = subprocess.run(command, cwd=place.folder, capture_output=True, text=True, timeout=DEADLINE_SECONDS, env=environment)
    assert done.returncode == 0 and done.stderr == "", done
    places = [done.stdout.find(words) for words in ("memory of one rank", "model: ", "1 rank on 1 node, 1 thread each", "2 steps, 0.08 epochs of 96 sequences", "step 1/2",
                                                    "step 2/2", "trained 2 steps in ", "memory at its peak: tensors ", "the model is in out/model")]
    assert -1 not in places and places == sorted(places), done.stdout
    assert "fp32 matrix products" not in done.stdout, done.stdout
    with open(place.path("out/config.toml")) as file:
        assert re.match(r"# zero_train \d+\.\d+\.\d+.*, 1 rank\n", file.read())
    done = subprocess.run([*command, "--overwrite", "--set", "training.global_batch_size=240"], cwd=place.folder, capture_output=True, text=True, timeout=DEADLINE_SECONDS,
                          env=environment)
    assert done.returncode == 0 and "a step of 240 sequences passes over the 96 of the data 2.5 times" in done.stderr, done
    common = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "common.sh")
    cores = [subprocess.run(["bash", "-c", f"source {common}; cores"], env=dict(os.environ, OMP_NUM_THREADS=n, OMP_THREAD_LIMIT=n), capture_output=True, text=True).stdout
             for n in ("1", "1000")]
    assert cores[0] == cores[1], cores


if __name__ == "__main__":
    run_in_places(globals(), __doc__)
