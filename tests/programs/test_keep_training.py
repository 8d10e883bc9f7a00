"""What scripts/keep_training makes of runs that end before their time: goes on, gives up, stops, and leaves nothing of a dead job.

usage: test_keep_training.py BIN TESTS_DATA [-k NAME]        exits 1 when something is wrong
"""
import contextlib
import errno
import glob
import os
import signal
import subprocess
import sys
import time

from checks import arguments, environment, run_checks
from test_checkpoints import DEADLINE_SECONDS, Place, wait_for_steps
from test_train_script import children_of

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "soak"))
from faults import failing_calls

SCRIPT = os.path.join(HERE, "..", "..", "scripts", "keep_training")
KEPT = ("--set", "training.steps=120", "--set", "checkpoint.interval=5")
PATIENCE_SECONDS = 2 * DEADLINE_SECONDS  # with three starts on a machine that has other work
ENDLESS = ("--set", "training.steps=100000", "--set", "checkpoint.interval=5")


@contextlib.contextmanager
def kept(place, *options, ranks=2, bin=None, **variables):
    """keep_training over place's run; nothing of it outlives a check that fails."""
    os.makedirs(place.path("tmp"), exist_ok=True)
    with open(place.path("said"), "w") as said:
        script = subprocess.Popen([SCRIPT, "--ranks", str(ranks), "--pause", "0.01", *options, "config.toml"], cwd=place.folder, stdout=said, stderr=subprocess.STDOUT,
                                  start_new_session=True, env=environment(ZERO_BIN=bin or place.bin, TMPDIR=place.path("tmp"), ZERO_CHECK=place.folder, **variables))
    try:
        yield script
    finally:
        for pid in {*processes(place), script.pid} if script.poll() is None else processes(place):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        script.wait()


def processes(place):
    """All that a check started, however far from the script."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/environ") as file:
            if f"ZERO_CHECK={place.folder}" in file.read().split("\0"):
                found.append(int(name))
    return found


def mpiruns_of(script):
    return [mpirun for train in children_of(script.pid, "train") for mpirun in children_of(train, "mpirun")]


def job_of(script):
    """(mpirun, its ranks)"""
    end = time.time() + DEADLINE_SECONDS
    while time.time() < end:
        for mpirun in mpiruns_of(script):
            if len(ranks := children_of(mpirun, "zero_train")) == 2:
                return mpirun, sorted(ranks)
        time.sleep(0.05)
    raise AssertionError("no job")


def expect_end(place, script, code=0, patience=DEADLINE_SECONDS):
    """What it said. Nothing is left of its jobs, nor of those of scripts that were killed before."""
    found, said = place.wait(script, patience)
    assert found == code, (found, said)
    assert not processes(place), said
    left = os.listdir(place.path("tmp")) + glob.glob(f"/dev/shm/zero-keep-{script.pid}-*")
    assert not left, left
    return said


def fake(place, body):
    """A folder with a program that is called zero_train, which counts its starts in the file `starts`."""
    os.makedirs(place.path("fake"), exist_ok=True)
    with open(place.path("fake/zero_train"), "w") as file:
        file.write(f'#!/bin/bash\necho "$@" >> starts\nn=$(wc -l < starts)\nmkdir -p out\ntouch out/.zero_run\n{body}\n')
    os.chmod(place.path("fake/zero_train"), 0o755)
    return place.path("fake")


def starts(place):
    with open(place.path("starts")) as file:
        return file.read().splitlines()


def options_of(place):
    """Of each start, those that decide what becomes of a run that is there."""
    return [[word for word in line.split() if word in ("--resume", "--overwrite")] for line in starts(place)]


def shell(place, command):
    subprocess.run(command, shell=True, cwd=place.folder, check=True)


def run_fake(place, body, *options, code, **variables):
    """(what was said, the command line of each start)"""
    shell(place, "rm -rf starts out")
    with kept(place, *options, ranks=1, bin=fake(place, body), **variables) as script:
        return expect_end(place, script, code), starts(place)


def check_goes_on(place, args):
    """A rank, mpirun and all of them are killed, one after the other; the result is the undisturbed run's."""
    code, said = place.run(*KEPT, out="undisturbed")
    assert code == 0, said
    with kept(place, *KEPT) as script:
        for kill, steps in ((lambda mpirun, ranks: ranks[1:], 12), (lambda mpirun, ranks: [mpirun], 40), (lambda mpirun, ranks: [mpirun, *ranks], 70)):
            assert wait_for_steps(place, script, steps)
            for pid in kill(*job_of(script)):
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.5)
        said = expect_end(place, script)
    assert said.count("goes on after checkpoint ") == 3 and "keep_training: finished after 4 starts" in said, said
    place.expect_same("out", "undisturbed")


def check_hangs(place, args):
    """Ranks that stand still are killed: where mpirun is dead and where nothing else is wrong."""
    with kept(place, "--set", "training.steps=200", "--set", "checkpoint.interval=5", "--hang", "20") as script:  # longer than a start
        for stopped, killed in ((slice(0, 3), slice(0, 0)), (slice(1, 3), slice(0, 1))):
            assert wait_for_steps(place, script, len(place.metrics()) + 5, patience=PATIENCE_SECONDS), place.wait(script)
            mpirun, ranks = job_of(script)
            for pid in [mpirun, *ranks][stopped]:
                os.kill(pid, signal.SIGSTOP)
            for pid in [mpirun, *ranks][killed]:
                os.kill(pid, signal.SIGKILL)
            end = time.time() + PATIENCE_SECONDS
            while any(os.path.exists(f"/proc/{rank}") for rank in ranks):
                assert time.time() < end, "they are alive"
                time.sleep(0.1)
        said = expect_end(place, script, patience=PATIENCE_SECONDS)
    assert said.count("nothing was written for 20 s, no step and no checkpoint: the job is killed") == 1, said


def check_stops(place, args):
    """SIGTERM, Ctrl-C and SIGUSR1, also while a rank stands still: a checkpoint and 75; the same command goes on."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        with kept(place, *ENDLESS) as script:
            assert wait_for_steps(place, script, len(place.metrics()) + 7)
            os.kill(job_of(script)[1][1], signal.SIGSTOP)
            os.kill(script.pid, number)
            said = expect_end(place, script, 75)
        assert "stopped on request after step" in said, said
        assert place.checkpoints()[-1] == f"step-{len(place.metrics()):08d}", (place.checkpoints(), len(place.metrics()))


def check_second_signal(place, args):
    """Ends at once what does not stop; what comes within a second is the same request."""
    for number, pause in ((signal.SIGTERM, 1.2), (signal.SIGINT, 0.4)):
        with kept(place, ranks=1, bin=fake(place, "trap '' USR1 TERM; touch there; while true; do sleep 0.1; done")) as script:
            end = time.time() + DEADLINE_SECONDS
            while not os.path.exists(place.path("there")):
                assert time.time() < end, place.wait(script)
                time.sleep(0.05)
            script.send_signal(number)
            time.sleep(0.05)
            script.send_signal(number)
            time.sleep(pause)
            assert script.poll() is None, place.wait(script)
            script.send_signal(number)
            assert "ended at once, as asked" in expect_end(place, script, 137)
        os.remove(place.path("there"))


def expect_gone(place):
    """No process and no file is left where the script was killed."""
    end = time.time() + DEADLINE_SECONDS
    while processes(place) or (files := [name for _, _, names in os.walk(place.path("tmp")) for name in names]):
        assert time.time() < end, (processes(place), files)
        time.sleep(0.1)


def check_killed_script(place, args):
    """Its run stops with a checkpoint, also one whose ranks have not started yet; the same command goes on, and removes what was left."""
    with kept(place, *ENDLESS) as script:
        while not mpiruns_of(script):
            assert script.poll() is None, place.wait(script)
        script.kill()
        expect_gone(place)
    with kept(place, *ENDLESS) as script:
        assert wait_for_steps(place, script, len(place.metrics()) + 7)
        job_of(script)
        script.kill()
        expect_gone(place)
    assert place.checkpoints()[-1] == f"step-{len(place.metrics()):08d}", (place.checkpoints(), len(place.metrics()))
    with kept(place, "--set", f"training.steps={len(place.metrics()) + 3}", "--set", "checkpoint.interval=5") as script:
        assert "goes on after checkpoint" in expect_end(place, script)


def check_folders_in_use(place, args):
    """A script removes no folder of another one, nor of a job that outlives it; and no file that a link leads to."""
    os.makedirs(place.path("tmp/zero-keep-1-dead/session"))
    os.makedirs(place.path("theirs/file"))
    os.symlink(place.path("theirs"), place.path("tmp/zero-keep-1-link"))
    with kept(place, ranks=1, bin=fake(place, "while [ ! -e end ]; do sleep 0.1; done")) as script:
        while not mpiruns_of(script):
            assert script.poll() is None, place.wait(script)
        mine, = glob.glob(place.path(f"tmp/zero-keep-{script.pid}-*"))
        refused = subprocess.run([SCRIPT, "none.toml"], cwd=place.folder, capture_output=True, env=environment(TMPDIR=place.path("tmp")))
        assert refused.returncode == 2 and sorted(os.listdir(place.path("tmp"))) == sorted(["zero-keep-1-link", os.path.basename(mine)]), os.listdir(place.path("tmp"))
        open(place.path("end"), "w").close()
        os.remove(place.path("tmp/zero-keep-1-link"))
        expect_end(place, script)
    assert os.path.exists(place.path("theirs/file"))


def check_mistakes(place, args):
    for options, piece in ((("--set", "zero.stage=7"), "stage"), (("--set", "job.output_dir="), "job.output_dir is missing"), (("--tries", "0"), "at least 1"),
                           (("--overwrite", "--resume"), "leave one out"), (("--nonsense",), "--nonsense")):
        with kept(place, *options) as script:
            said = expect_end(place, script, 2)
            assert piece in said and said.count("keep_training: start ") == (options[-1] == "zero.stage=7"), said
    os.remove(place.path("config.toml"))
    with kept(place) as script:
        said = expect_end(place, script, 2)
        assert "keep_training: config.toml: No such file or directory\n" in said, said


def check_gives_up(place, args):
    begin = time.time()
    said, lines = run_fake(place, "exit 1", "--tries", "4", code=1)
    assert len(lines) == 4 and "given up after 4 starts that came no further" in said and time.time() - begin >= 0.06 + 0.36 + 2.16, said
    assert all(f"starts again in {pause} s ({n} of 4 that came no further)" in said for n, pause in ((1, "0.06"), (2, "0.36"), (3, "2.16"))), said
    assert all("--resume" not in line for line in lines), lines
    one_step_a_start = 'touch out/config.toml; echo "{\\"step\\":$n}" >> out/metrics.jsonl; [ $n -lt 6 ]  && exit 1; exit 0'
    said, lines = run_fake(place, one_step_a_start, "--tries", "2", code=0)
    assert len(lines) == 6 and "--resume" not in lines[0] and all("--resume" in line for line in lines[1:]), (lines, said)
    checkpoints = 'touch out/config.toml; mkdir -p out/checkpoints/step-0000000$n; touch out/checkpoints/step-0000000$n/manifest.json; [ $n -lt 4 ] && kill -KILL $$; exit 0'
    said, lines = run_fake(place, checkpoints, "--tries", "1", code=0)
    assert len(lines) == 4 and "ended by signal 9 after step 0, checkpoint 1" in said, said


def check_refused_later(place, args):
    """A start that is refused after one that was not is tried again: a disk that is full, say, is no mistake of the user."""
    said, lines = run_fake(place, "[ $n -eq 1 ] && touch out/config.toml && exit 1; [ $n -lt 4 ] && exit 2; exit 0", code=0)
    assert len(lines) == 4, said
    said, lines = run_fake(place, "exit 2", code=2)
    assert len(lines) == 1, said
    trained = 'touch out/config.toml; mkdir -p out/checkpoints/step-00000400; touch out/checkpoints/step-00000400/manifest.json; echo "{\\"step\\":500}" > out/metrics.jsonl'
    said, lines = run_fake(place, f"[ $n -gt 1 ] && exit 0; {trained}; exit 2", code=0)  # the data's disk failed
    assert len(lines) == 2 and "--resume" in lines[1], (said, lines)


def check_users_own_configuration(place, args):
    """A config.toml in the folder that no run wrote is neither resumed nor marked."""
    os.makedirs(place.path("out"))
    os.rename(place.path("config.toml"), place.path("out/config.toml"))
    os.symlink("out/config.toml", place.path("config.toml"))
    for more in ((), ("--overwrite",)):
        with kept(place, *more) as script:
            assert "holds config.toml, which has no mark" in expect_end(place, script, 2)
        assert os.listdir(place.path("out")) == ["config.toml"], os.listdir(place.path("out"))


def check_mark_that_cannot_be_written(place, args):
    """It is told once, and what hangs is killed all the same."""
    said, lines = run_fake(place, "mkdir -p out/.keep_training; touch out/config.toml; [ $n -gt 1 ] && exit 0; sleep 1000", "--hang", "2", code=0)
    assert len(lines) == 2 and said.count("out/.keep_training cannot be written (Is a directory)") == 1 and "nothing was written for 2 s" in said, said


def check_exit_code_75(place, args):
    body = "touch out/config.toml; [ $n -lt 3 ] && exit 75; exit 0"
    assert len(run_fake(place, body, code=0)[1]) == 3
    assert len(run_fake(place, body, "--on-stop", "exit", code=75)[1]) == 1
    assert len(run_fake(place, body, code=75, SLURM_JOB_ID="7")[1]) == 1
    assert len(run_fake(place, body, "--on-stop", "restart", code=0, SLURM_JOB_ID="7")[1]) == 3


def check_overwrite(place, args):
    """Removes the run that was there before the command, until the new one has begun, and never that one: neither after a restart of the machine."""
    begins = "rm -f out/*; touch out/config.toml; "
    old = "rm -rf out starts; mkdir out; touch out/.zero_run; echo old > out/config.toml; echo '{\"step\":500}' > out/metrics.jsonl"
    first = ["--overwrite"]
    for before in ("rm -rf out starts", old, f"{old}; rm out/config.toml"):
        shell(place, before)
        for body, expected in (("exit 1", [first, first]), (f"[ $n -eq 1 ] && exit 1; {begins} exit 1", [first, first]), ("exit 1", [["--resume"]] * 2)):
            with kept(place, "--overwrite", "--tries", "2", ranks=1, bin=fake(place, body)) as script:
                said = expect_end(place, script, 1)
            assert options_of(place) == expected, (before, body, starts(place))
            os.remove(place.path("starts"))
        assert "--overwrite does not remove the run in out, which this script has kept before: it goes on. To begin anew remove out/.keep_training" in said, said
    shell(place, old)  # nor do its steps count
    comes_on = f"[ $n -eq 1 ] && exit 1; [ $n -eq 2 ] && {{ {begins} }}; touch out/config.toml; echo \"{{\\\"step\\\":$n}}\" >> out/metrics.jsonl; [ $n -lt 6 ] && exit 1; exit 0"
    with kept(place, "--overwrite", "--tries", "2", ranks=1, bin=fake(place, comes_on)) as script:
        expect_end(place, script)
    shell(place, "rm -rf out")  # zero_train itself
    code, said = place.run("--set", "training.steps=3")
    assert code == 0, said
    with kept(place, *ENDLESS, "--overwrite") as script:
        assert wait_for_steps(place, script, 12)
        script.kill()
        expect_gone(place)
    steps = len(place.metrics())
    with kept(place, "--set", f"training.steps={steps + 3}", "--set", "checkpoint.interval=5", "--overwrite") as script:
        assert f"goes on after checkpoint {steps}" in expect_end(place, script)


def wait_for_said(place, words):
    end = time.time() + DEADLINE_SECONDS
    while True:
        with open(place.path("said")) as file:
            if words in (said := file.read()):
                return
        assert time.time() < end, said
        time.sleep(0.02)


def check_file_server_away(place, args):
    """An error of the system is no absence: the script waits for an answer, and never begins anew what has begun."""
    begins = f'if [ $n -eq 1 ]; then rm -f out/config.toml; mkdir -p out/checkpoints; touch out/config.toml; echo "{{\\"step\\":7}}" > out/metrics.jsonl; touch {place.path("away")}; exit 2; fi'
    for reason, calls, more in ((errno.EIO, None, "--overwrite"), (errno.ESTALE, None, "--resume"), (errno.EACCES, None, "--overwrite"), (errno.EIO, "list", "--overwrite"),
                                (errno.ESTALE, "look", "--overwrite"), (errno.EMFILE, "open", "--overwrite")):
        shell(place, "rm -rf out starts away; mkdir out; touch out/.zero_run out/config.toml")
        away = failing_calls(place.folder, below=place.path("out"), during=place.path("away"), reason=reason, calls=calls)
        with kept(place, more, "--tries", "1", "--hang", "60", ranks=1, bin=fake(place, begins), **away) as script:
            wait_for_said(place, "waits, since the system says: out/")
            assert script.poll() is None
            os.remove(place.path("away"))
            said = expect_end(place, script)
        assert options_of(place) == [[more], ["--resume"]] and os.strerror(reason) in said and "after step 7" in said and "Traceback" not in said, (starts(place), said)


def check_folder_that_is_gone(place, args):
    """A run that has begun is waited for where its folder is not there: its file system is not mounted. A stop does not wait for it."""
    begins = 'if [ $n -eq 1 ]; then touch out/config.toml; echo "{\\"step\\":7}" > out/metrics.jsonl; exit 1; fi; if [ $n -eq 2 ]; then mv out gone; exit 2; fi; ls out/config.toml'
    with kept(place, "--tries", "1", ranks=1, bin=fake(place, begins)) as script:
        wait_for_said(place, "out: the run is not there any more")
        os.rename(place.path("gone"), place.path("out"))
        expect_end(place, script)
    assert options_of(place) == [[], ["--resume"], ["--resume"]], starts(place)
    with kept(place, ranks=1, bin=fake(place, "mv out gone; exit 1")) as script:
        wait_for_said(place, "out: the run is not there any more")
        script.terminate()
        expect_end(place, script, 75)


def main():
    args = arguments(__doc__)
    run_checks(args, globals(), lambda check, folder: check(Place(folder, args.bin, args.data), args))


if __name__ == "__main__":
    main()
