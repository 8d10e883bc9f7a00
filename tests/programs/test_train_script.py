"""What scripts/train makes of signals, options and a terminal, and what stays on the screen.

usage: test_train_script.py BIN TESTS_DATA [-k NAME]        exits 1 when something is wrong
"""
import contextlib
import os
import pty
import re
import shutil
import signal
import subprocess
import time

from checks import arguments, environment, run_checks
from test_checkpoints import Place, wait_for_steps, wait_for_words

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "train")
DEADLINE_SECONDS = 60
ENDLESS = ("--set", "training.steps=100000", "--set", "checkpoint.interval=0")


def children_of(pid, program):
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{name}/stat") as file:
                own, _, rest = file.read().rpartition(")")
            if own.endswith("(" + program) and int(rest.split()[1]) == pid:
                found.append(int(name))
    return found


def ranks_of(script):
    """Process ids of the script's ranks, in their order."""
    def number(pid):
        with open(f"/proc/{pid}/environ") as file:
            return int(re.search(r"\0OMPI_COMM_WORLD_RANK=(\d+)\0", file.read()).group(1))

    return sorted((rank for job in children_of(script.pid, "mpirun") for rank in children_of(job, "zero_train")), key=number)


@contextlib.contextmanager
def two_ranks(place, *options):
    """scripts/train in a process group of its own, as a shell starts it. It does not outlive a check that fails."""
    with open(place.path("said"), "w") as said:
        script = subprocess.Popen([SCRIPT, "config.toml", "-np", "2", "--", *options], cwd=place.folder, stdout=said, stderr=subprocess.STDOUT, preexec_fn=os.setpgrp,
                                  env=environment(ZERO_BIN=place.bin))
    try:
        yield script
    finally:
        if script.poll() is None:
            for pid in [*ranks_of(script), *children_of(script.pid, "mpirun"), script.pid]:
                os.kill(pid, signal.SIGKILL)
            script.wait()


def check_missing_programs(place):
    """They are named before anything starts."""
    def refused(**env):
        done = subprocess.run([SCRIPT, "config.toml"], cwd=place.folder, capture_output=True, text=True, timeout=DEADLINE_SECONDS, env=environment(**env))
        assert done.returncode == 2 and not done.stdout, done
        return done.stderr

    assert refused(ZERO_BIN="/nowhere") == "train: /nowhere/zero_train cannot be executed: correct ZERO_BIN, the folder of the programs\n"
    os.mkdir(place.path("few"))
    for name in ("dirname", "grep"):
        os.symlink(shutil.which(name), place.path("few", name))
    assert "train: there is no mpirun on the PATH: install Open MPI" in refused(ZERO_BIN=place.bin, PATH=place.path("few"))


def expect_stopped(place, script):
    """In order, and said once: the checkpoint is that of the last step."""
    code, said = place.wait(script)
    assert code == 75 and said.rstrip().splitlines()[-1].startswith("stopped on request after step"), (code, said)
    assert place.checkpoints() == [f"step-{len(place.metrics()):08d}"], (place.checkpoints(), len(place.metrics()))


def check_help(place):
    for options in (["-h"], ["--help"], ["config.toml", "-h"], ["config.toml", "-np", "2", "--help", "--", "--resume"]):
        done = subprocess.run([SCRIPT, *options], cwd=place.folder, capture_output=True, text=True, timeout=DEADLINE_SECONDS, env=environment(ZERO_BIN="/nowhere"))
        assert done.returncode == 0 and done.stdout.startswith("usage: scripts/train CONFIG") and not done.stderr, (options, done)
        assert max(map(len, done.stdout.splitlines())) <= 80, done.stdout
    done = subprocess.run([SCRIPT, "config.toml", "-np", "1", "--", "--help"], cwd=place.folder, capture_output=True, text=True, timeout=DEADLINE_SECONDS,
                          env=environment(ZERO_BIN=place.bin))
    assert done.returncode == 0 and done.stdout.startswith("Trains a language model"), done
    done = subprocess.run([SCRIPT], capture_output=True, text=True, timeout=DEADLINE_SECONDS)
    assert done.returncode == 2 and done.stderr.startswith("usage: scripts/train CONFIG"), done


def check_signals_that_come_twice(place):
    """They are one request while a step takes a second; of Ctrl-C those within a fifth of a second, as a wrapper sends them."""
    for number, gap in ((signal.SIGINT, 0.02), (signal.SIGTERM, 0.02), (signal.SIGTERM, 0.4)):
        with two_ranks(place, *ENDLESS) as script:
            assert wait_for_steps(place, script, 1)
            sleeper = ranks_of(script)[1]
            os.kill(sleeper, signal.SIGSTOP)
            os.kill(script.pid, number)
            time.sleep(gap)
            os.kill(script.pid, number)
            time.sleep(1)
            assert script.poll() is None, place.wait(script)
            os.kill(sleeper, signal.SIGCONT)
            expect_stopped(place, script)
        shutil.rmtree(place.path("out"))


def check_ctrl_c_once_more_when_the_run_has_stopped(place):
    """mpirun, which is about to end, is left alone."""
    for gap in (0.3, 0.6, 1):
        with two_ranks(place, *ENDLESS) as script:
            assert wait_for_steps(place, script, 1)
            os.killpg(script.pid, signal.SIGINT)
            time.sleep(gap)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(script.pid, signal.SIGINT)
            code, said = place.wait(script)
            assert code in (75, 130) and "Segmentation" not in said, (gap, code, said)   # 130: its ranks were still writing
        shutil.rmtree(place.path("out"))


def check_script_that_is_killed(place):
    """Its run is not left to itself: it stops with a checkpoint."""
    with two_ranks(place, *ENDLESS) as script:
        assert wait_for_steps(place, script, 1)
        script.kill()
        assert wait_for_words(place, subprocess.Popen(["sleep", str(DEADLINE_SECONDS)]), "stopped on request after step")
    assert len(place.checkpoints()) == 1


def options_of_zero_train(place):
    """But for --help, which is the script's too."""
    said = subprocess.run([place.bin + "/zero_train", "--help"], capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=True).stdout
    found = set(re.findall(r"^ +(?:-\w,)?(--[a-z-]+)", said, re.M)) - {"--help"}
    assert {"--set", "--resume", "--memory", "--json", "--version"} <= found, said
    return sorted(found)


def check_refused(place):
    for options, piece in ((["-np", "0"], "-np 0: must be a number of ranks"), (["-np"], "-np nothing"),
                           (["-np", "2", "--overwrite"], "those follow --: scripts/train config.toml -- --overwrite"),
                           (["--memory=4GiB"], "those follow --: scripts/train config.toml -- --memory=4GiB"),
                           (["--lr=3"], "--lr=3: is no option of mpirun"),
                           *(([option], f"{option} is an option of zero_train, and those follow --") for option in options_of_zero_train(place))):
        done = subprocess.run([SCRIPT, "config.toml", *options], cwd=place.folder, capture_output=True, text=True, timeout=DEADLINE_SECONDS, env=environment(ZERO_BIN=place.bin))
        assert done.returncode == 2 and piece in done.stderr, (options, done)


def check_launcher_of_an_installation(place):
    """zero_launch starts the program next to it, names itself, and adds nothing of mpirun's to the program's last words."""
    home = place.path("prefix")
    os.makedirs(home + "/bin")
    os.makedirs(home + "/lib/zero/scripts")
    source = os.path.join(os.path.dirname(SCRIPT), "..")
    shutil.copy(source + "/cmake/packaging/zero_launch", home + "/bin")
    for name in ("train", "common.sh"):
        shutil.copy(os.path.join(source, "scripts", name), home + "/lib/zero/scripts")
    os.symlink(place.bin + "/zero_train", home + "/bin/zero_train")
    env = {name: value for name, value in environment().items() if name != "ZERO_BIN"}
    done = subprocess.run([home + "/bin/zero_launch", "config.toml", "-np", "2", "--", "--set", "training.steps=none"], cwd=place.folder, capture_output=True, text=True, env=env, timeout=DEADLINE_SECONDS)
    assert done.returncode == 2 and done.stderr.startswith("error: --set training.steps=none") and done.stderr.count("\n") == 1, done
    done = subprocess.run([home + "/bin/zero_launch", "config.toml", "--resume"], cwd=place.folder, capture_output=True, text=True, env=env, timeout=DEADLINE_SECONDS)
    assert done.returncode == 2 and "zero_launch config.toml -- --resume" in done.stderr, done
    said = subprocess.run([home + "/bin/zero_launch", "--help"], capture_output=True, text=True, env=env, timeout=DEADLINE_SECONDS).stdout
    assert "zero_launch examples/pretrain.toml" in said and "Without -np" in said and "build" not in said and "ZERO_BIN" not in said, said


def check_nodes_that_cannot_be_reached(place):
    """Told in one line of the script's, with exit code 2, and without a word of going on: nothing has started."""
    for name, content in (("typo", "nosuchhost.invalid slots=2\n"), ("prose", "# nodes\nthis is no hostfile!\n"), ("blank", "# none\n\n"),
                          ("word", "localhost slots=two\n"), ("none", "localhost slots = 0 # no rank\n"), ("more", "\nlocalhost slots=2 gpus=1\n"), ("here", "localhost slots=2 # this machine\n")):
        with open(place.path(name), "w") as file:
            file.write(content)

    def started(*options, **more):
        return subprocess.run([SCRIPT, "config.toml", *options], cwd=place.folder, capture_output=True, text=True, timeout=DEADLINE_SECONDS, env=environment(ZERO_BIN=place.bin, **more))

    for options, said in ((["--hostfile", "nothere"], "--hostfile nothere: there is no such file that can be read; it has a line for each node: NAME slots=RANKS"),
                          (["--hostfile"], "--hostfile nothing: there is no such file"),
                          (["-machinefile", "typo"], "typo:1: there is no host of the name nosuchhost.invalid; correct it, or add it to /etc/hosts"),
                          (["--hostfile", "prose"], "prose:2: this is no hostfile!: is no line of a hostfile, which is NAME slots=RANKS"),
                          (["--hostfile", "blank"], "--hostfile blank: names no node"),
                          (["--hostfile", "word"], "word:1: slots=two: must be a whole number of at least 1, such as slots=2"),
                          (["--hostfile", "none"], "none:1: slots=0: must be a whole number of at least 1"),
                          (["--hostfile", "more"], "more:2: gpus=1: mpirun knows no such setting of a node; ranks are slots=RANKS"),
                          (["--host", "localhost,nosuchhost.invalid:2"], "--host localhost,nosuchhost.invalid:2: there is no host of the name nosuchhost.invalid"),
                          (["--master_port", "29500"], "--master_port is an option of torchrun: ranks find each other without an address; -np N starts N of them"),
                          (["--nproc_per_node=2"], "--nproc_per_node=2 is an option of torchrun"),
                          (["--not-of-mpirun", "3"], 'unknown option "--not-of-mpirun" of mpirun; options of zero_train follow --'),
                          # an agent that reaches nothing, for an address that is for documentation alone
                          (["--mca", "plm_rsh_agent", "/bin/false", "--host", "192.0.2.1:2", "-np", "2"], "mpirun could not start the ranks on all nodes: each must be reached by ssh without a password")):
        done = started(*options)
        assert done.returncode == 2 and done.stderr.startswith("train: " + said) and done.stderr.count("\n") == 1 and not done.stdout, (options, done)
    # names that only an agent of the user's, or a scheduler, knows are left to it
    for more in ({"OMPI_MCA_plm_rsh_agent": "/bin/false"}, {"SLURM_JOB_ID": "1", "OMPI_MCA_plm": "rsh"}):
        assert "there is no host" not in started("--hostfile", "typo", "-np", "2", **more).stderr
    done = started("--hostfile", "here", "-np", "2", "--", "--set", "training.steps=1", "--overwrite")
    assert done.returncode == 0 and "2 ranks on 1 node" in done.stdout, done


def check_ctrl_z(place):
    """The run goes on, with its script."""
    with two_ranks(place, *ENDLESS) as script:
        assert wait_for_steps(place, script, 1)
        os.killpg(script.pid, signal.SIGTSTP)
        assert wait_for_words(place, script, "train: Ctrl-Z does not halt a run: Ctrl-C stops it")
        assert wait_for_steps(place, script, len(place.metrics()) + 3)
        os.killpg(script.pid, signal.SIGINT)
        expect_stopped(place, script)


def check_signal_before_the_job(place):
    """It is not forgotten: mpirun gets it as soon as it is there."""
    with open(place.path("early"), "w") as file:
        file.write("trap '[ \"$BASH_COMMAND\" != \"filter=\\$!\" ] || kill -TERM $$' DEBUG\n")
    done = subprocess.run([SCRIPT, "config.toml", "-np", "1", "--", "--set", "training.steps=20"], cwd=place.folder, capture_output=True, text=True, timeout=DEADLINE_SECONDS,
                          env=environment(ZERO_BIN=place.bin, BASH_ENV=place.path("early")))
    assert done.returncode in (75, 128 + signal.SIGUSR1), done


def check_words_that_nobody_takes(place):
    """A full disk below the log, or a reader that is gone, does not end the run."""
    os.mkdir(place.path("talker"))
    with open(place.path("talker/zero_train"), "w") as file:
        file.write("#!/bin/sh\nfor i in $(seq 300); do echo line $i; echo line $i >&2; sleep 0.005; done\ntouch ended\n")
    os.chmod(place.path("talker/zero_train"), 0o755)
    reader, gone = os.pipe()
    os.close(reader)
    for words in (os.open("/dev/full", os.O_WRONLY), gone):
        for output, errors in ((subprocess.PIPE, words), (words, subprocess.PIPE)):
            done = subprocess.run([SCRIPT, "config.toml", "-np", "1"], cwd=place.folder, stdout=output, stderr=errors, timeout=DEADLINE_SECONDS,
                                  env=environment(ZERO_BIN=place.path("talker")))
            assert done.returncode == 0 and (done.stdout or done.stderr).count(b"line") == 300, done
            os.remove(place.path("ended"))
        os.close(words)


def check_mpirun_that_hangs(place):
    """An mpirun that waits for a lock after its ranks have ended is killed. One that has ranks, or that still writes, is not."""
    with open(place.path("mpirun"), "w") as file:
        file.write("#!/usr/bin/env python3\nimport os, subprocess, threading, time\nsubprocess.run(['sleep', '3'])\nprint('ranks have ended', flush=True)\n"
                   "if os.environ['HANGS'] == 'yes':\n    lock = threading.Lock()\n    lock.acquire()\n    lock.acquire()\ntime.sleep(12)\n")
    os.chmod(place.path("mpirun"), 0o755)
    for hangs, code in (("yes", 1), ("no", 0)):
        env = environment(ZERO_BIN=place.bin, PATH=place.folder + ":" + os.environ["PATH"], HANGS=hangs)
        done = subprocess.run([SCRIPT, "config.toml", "-np", "2"], cwd=place.folder, capture_output=True, text=True, timeout=DEADLINE_SECONDS, env=env)
        assert done.returncode == code and done.stdout == "ranks have ended\n", done
        assert ("mpirun hung after all ranks had ended" in done.stderr) == (hangs == "yes"), done


def check_rank_that_fails_alone(place):
    """The others are ended by SIGTERM, to which none answers that a checkpoint follows."""
    with two_ranks(place, *ENDLESS, "--set", "comm.deadline_seconds=2") as script:
        assert wait_for_steps(place, script, 1)
        os.kill(ranks_of(script)[0], signal.SIGSTOP)
        code, said = place.wait(script)
        assert code == 1 and "error: " in said and "rank 0" in said and "asked to stop" not in said, (code, said)


def check_sigterm_is_answered(place):
    with two_ranks(place, *ENDLESS) as script:
        assert wait_for_steps(place, script, 1)
        first, sleeper = ranks_of(script)
        os.kill(sleeper, signal.SIGSTOP)
        os.kill(first, signal.SIGTERM)
        assert wait_for_words(place, script, "asked to stop: a checkpoint follows")
        os.kill(sleeper, signal.SIGCONT)
        expect_stopped(place, script)


def on_terminal(command, place, during=lambda process: None):
    """What a terminal receives of a program."""
    master, slave = pty.openpty()
    process = subprocess.Popen(command, cwd=place.folder, stdin=slave, stdout=slave, stderr=slave, env=environment(ZERO_BIN=place.bin))
    os.close(slave)
    during(process)
    received = b""
    with contextlib.suppress(OSError):  # the last writer is gone
        while more := os.read(master, 65536):
            received += more
    os.close(master)
    process.wait(timeout=DEADLINE_SECONDS)
    return received.decode()


def check_terminal(place):
    """Messages take the place of the line that shows the step, and do not stand behind it."""
    overflowing = ("--set", "training.steps=4", "--set", "training.precision=fp16", "--set", "optimizer.lr=10000", "--set", "checkpoint.interval=0", "--overwrite")
    for command in ([place.bin + "/zero_train", "config.toml"], [SCRIPT, "config.toml", "-np", "1", "--"]):
        received = on_terminal([*command, *overflowing], place)
        steps, warnings = re.findall(r"\r\x1b\[Kstep \d/4", received), received.count("warning: step ")
        assert len(steps) == 4 and warnings >= 2 and len(re.findall(r"(?:\n|\r\x1b\[K)warning: step ", received)) == warnings, received

    def kill_a_rank(script):
        assert wait_for_steps(place, script, 3)
        os.kill(ranks_of(script)[1], signal.SIGKILL)

    shutil.rmtree(place.path("out"))
    received = on_terminal([SCRIPT, "config.toml", "-np", "2", "--", *ENDLESS], place, kill_a_rank)
    assert "\r\x1b[Ktrain: rank 1 on " in received, received


def main():
    args = arguments(__doc__)
    run_checks(args, globals(), lambda check, folder: check(Place(folder, args.bin, args.data)))


if __name__ == "__main__":
    main()
