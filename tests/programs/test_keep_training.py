"""What scripts/keep_training makes of runs that end before their time: goes on, gives up, stops, and leaves nothing of a dead job.

usage: test_keep_training.py BIN TESTS_DATA [-k NAME] [--seconds N]        exits 1 when something is wrong
"""
import contextlib
import glob
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

from checks import arguments, environment, run_checks
from test_checkpoints import DEADLINE_SECONDS, Place, wait_for_steps
from test_train_script import children_of

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "scripts"))
from keep_training_run import Run
sys.path.insert(0, os.path.join(HERE, "..", "soak"))
import samples

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


def job_of(script):
    """(mpirun, its ranks)"""
    end = time.time() + DEADLINE_SECONDS
    while time.time() < end:
        for mpirun in children_of(script.pid, "mpirun"):
            if len(ranks := children_of(mpirun, "zero_train")) == 2:
                return mpirun, sorted(ranks)
        time.sleep(0.05)
    raise AssertionError("no job")


def expect_end(place, script, code=0, patience=DEADLINE_SECONDS):
    """What it said. Nothing is left of its jobs."""
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
        file.write(f'#!/bin/bash\necho "$@" >> starts\nn=$(wc -l < starts)\nmkdir -p out\n{body}\n')
    os.chmod(place.path("fake/zero_train"), 0o755)
    return place.path("fake")


def starts(place):
    with open(place.path("starts")) as file:
        return file.read().splitlines()


def run_fake(place, body, *options, code, **variables):
    """(what was said, the command line of each start)"""
    for name in ("starts", "out"):
        subprocess.run(["rm", "-rf", place.path(name)], check=True)
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


def check_damage(place, args):
    """The newest checkpoint is damaged: said, and the one before is taken."""
    code, said = place.run(*KEPT, out="undisturbed")
    assert code == 0, said
    with kept(place, *KEPT, "--set", "checkpoint.keep=4") as script:
        assert wait_for_steps(place, script, 20)
        ranks = job_of(script)[1]
        for pid in ranks:
            os.kill(pid, signal.SIGSTOP)
        newest = [name for name in place.checkpoints() if len(name) == 13][-1]
        with open(place.path("out/checkpoints", newest, "rank-00001.states"), "r+b") as file:
            byte = file.read(1)[0]
            file.seek(0)
            file.write(bytes([byte ^ 16]))
        for pid in ranks:
            os.kill(pid, signal.SIGKILL)
        said = expect_end(place, script)
    assert f"the checkpoint of step {int(newest[5:])} does not verify" in said and "The one before is taken" in said, said
    assert newest + ".damaged" in place.checkpoints(), place.checkpoints()
    place.expect_same("out", "undisturbed")


def check_hangs(place, args):
    """Ranks that stand still are killed: where mpirun is dead and where nothing else is wrong."""
    with kept(place, "--set", "training.steps=400", "--set", "checkpoint.interval=5", "--hang", "20") as script:  # longer than a start
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
    """Nothing is left where the script was killed."""
    end = time.time() + DEADLINE_SECONDS
    while processes(place) or os.listdir(place.path("tmp")):
        assert time.time() < end, (processes(place), os.listdir(place.path("tmp")))
        time.sleep(0.1)


def check_killed_script(place, args):
    """Its run stops with a checkpoint, also one whose ranks have not started yet; the same command goes on."""
    with kept(place, *ENDLESS) as script:
        while not children_of(script.pid, "mpirun"):
            assert script.poll() is None, place.wait(script)
        script.kill()
        expect_gone(place)
    with kept(place, *ENDLESS) as script:
        assert wait_for_steps(place, script, len(place.metrics()) + 7)
        job_of(script)
        script.kill()
        expect_gone(place)
    assert place.checkpoints()[-1] == f"step-{len(place.metrics()):08d}", (place.checkpoints(), len(place.metrics()))
    os.makedirs(place.path("tmp/zero-keep-old/something"))  # of a script that was killed with all else
    with kept(place, "--set", f"training.steps={len(place.metrics()) + 3}", "--set", "checkpoint.interval=5") as script:
        assert "goes on after checkpoint" in expect_end(place, script)


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


def check_same_end(place, args):
    """Starts that end with one error and come no further: another one would not mend it. Its words are handed on, and told once more."""
    said, lines = run_fake(place, "echo 'warning: beware' >&2; echo '[rank 1] error: no luck' >&2; exit 1", code=1)
    assert len(lines) == 3 and said.count("\n[rank 1] error: no luck\n") == 3 and said.count("warning: beware\n") == 3, said
    assert "given up: 3 starts in a row ended so, with no further step and no newer checkpoint, and another one would not mend it: [rank 1] error: no luck\n" in said, said
    assert len(run_fake(place, "echo 'error: no luck' >&2; exit 1", "--same", "0", "--tries", "4", code=1)[1]) == 4
    for body in ('echo "error: of start $n" >&2; exit 1', 'echo "error: no luck" >&2; exit $((n + 2))', 'echo "error: no luck" >&2; kill -KILL $$'):
        code = 5 if "n + 2" in body else 137 if "KILL" in body else 1
        assert len(run_fake(place, body, "--same", "2", "--tries", "3", code=code)[1]) == 3, body
    comes_on = 'touch out/config.toml; [ $((n % 2)) -eq 0 ] && echo "{\\"step\\":$n}" >> out/metrics.jsonl; [ $n -lt 5 ] && { echo "error: no luck" >&2; exit 1; }; exit 0'
    assert len(run_fake(place, comes_on, code=0)[1]) == 5
    comes_once = 'touch out/config.toml; [ $n -eq 1 ] && echo "{\\"step\\":7}" >> out/metrics.jsonl; echo "error: no luck" >&2; exit 1'
    for same in (3, 1):  # what came further is none of them
        said, lines = run_fake(place, comes_once, "--same", str(same), code=1)
        assert len(lines) == same + 1 and f"given up: {same} start" in said, said
    said, lines = run_fake(place, comes_once, "--pause", "0.1", "--same", "2", code=1)
    pauses = [float(line.split(" starts again in ")[1].split()[0]) for line in said.splitlines() if " starts again in " in line]
    assert pauses == [0.1, 0.6], said  # of the default: 5, 30, 180 and 300 s, so that an outage of minutes is no end


def check_refused_later(place, args):
    """A start that is refused after one that was not is tried again: a disk that is full, say, is no mistake of the user."""
    said, lines = run_fake(place, "[ $n -eq 1 ] && touch out/config.toml && exit 1; [ $n -lt 4 ] && exit 2; exit 0", code=0)
    assert len(lines) == 4, said
    said, lines = run_fake(place, "exit 2", code=2)
    assert len(lines) == 1, said


def check_finished_without_checkpoints(place, args):
    """The same command once more has nothing to do, unless more steps are asked for: then it is zero_train that refuses."""
    with kept(place, "--set", "training.steps=2", "--set", "checkpoint.interval=0") as script:
        expect_end(place, script)
    with kept(place, "--set", "training.steps=2", "--set", "checkpoint.interval=0") as script:
        said = expect_end(place, script)
        assert "the run is finished" in said and "start 1" not in said, said
    with kept(place, "--set", "training.steps=3", "--set", "checkpoint.interval=0") as script:
        said = expect_end(place, script, 2)
        assert "nothing to resume" in said, said


def check_exit_code_75(place, args):
    body = "touch out/config.toml; [ $n -lt 3 ] && exit 75; exit 0"
    assert len(run_fake(place, body, code=0)[1]) == 3
    assert len(run_fake(place, body, "--on-stop", "exit", code=75)[1]) == 1
    assert len(run_fake(place, body, code=75, SLURM_JOB_ID="7")[1]) == 1
    assert len(run_fake(place, body, "--on-stop", "restart", code=0, SLURM_JOB_ID="7")[1]) == 3


def check_overwrite(place, args):
    """Until the new run has begun: what an old one left is not taken for it."""
    os.makedirs(place.path("out"))
    with open(place.path("out/config.toml"), "w") as file:
        file.write("an old run's")
    begins_at_its_third = "[ $n -lt 3 ] && exit 1; [ $n -eq 3 ] && { rm out/config.toml; touch out/config.toml; exit 1; }; exit 0"
    with kept(place, "--overwrite", ranks=1, bin=fake(place, begins_at_its_third)) as script:
        expect_end(place, script)
    assert ["--overwrite" in line for line in starts(place)] == [True, True, True, False] and "--resume" in starts(place)[3], starts(place)
    # nor are its steps, beyond which the new run comes late
    with open(place.path("out/metrics.jsonl"), "w") as file:
        file.write('{"step":500}\n')
    os.remove(place.path("starts"))
    comes_on = "[ $n -eq 1 ] && exit 1; [ $n -eq 2 ] && rm out/*; touch out/config.toml; echo \"{\\\"step\\\":$n}\" >> out/metrics.jsonl; [ $n -lt 6 ] && exit 1; exit 0"
    with kept(place, "--overwrite", "--tries", "2", ranks=1, bin=fake(place, comes_on)) as script:
        expect_end(place, script)


def check_states_saved_elsewhere(place, args):
    """What zero_train put aside when the disk was full goes where the run looks for it, and the run goes on from there; other runs' stays."""
    options = ("--set", "training.steps=12", "--set", "checkpoint.interval=4", "--set", "checkpoint.keep=3")
    for out in ("other", "out"):
        code, said = place.run(*options, out=out)
        assert code == 0, said
        for step, name in ((8, "zero-checkpoint-abc"), (12, "zero-checkpoint-xyz")):
            os.makedirs(place.path(name + out))
            shutil.move(place.path(out, f"checkpoints/step-{step:08d}"), place.path(name + out))
        shutil.rmtree(place.path(out, "model"))
    full = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, full[1]))  # there is no room yet
    said = Run(place.path("out")).bring_home([place.folder])
    resource.setrlimit(resource.RLIMIT_FSIZE, full)
    assert said.endswith("/out/checkpoints/step-00000012 yet: File too large"), said
    assert place.checkpoints() == ["step-00000004"], place.checkpoints()
    with kept(place, *options) as script:
        said = expect_end(place, script)
    assert "/step-00000012 is now out/checkpoints/step-00000012" in said and "resumed after step 12" in said, said
    assert sorted(glob.glob(place.path("zero-checkpoint-*/*"))) == [place.path("zero-checkpoint-abcother/step-00000008"), place.path("zero-checkpoint-xyzother/step-00000012")], said


def check_states_of_a_run_that_is_gone(place, args):
    """A run begins where one was that saved states elsewhere: they are none of its own."""
    options = ("--set", "training.steps=12", "--set", "checkpoint.interval=4")
    code, said = place.run(*options)
    assert code == 0, said
    os.makedirs(place.path("zero-checkpoint-abc"))
    shutil.copytree(place.path("out/checkpoints/step-00000012"), place.path("zero-checkpoint-abc/step-00000012"))
    for removed, more in ((True, ()), (False, ("--overwrite",))):
        if removed:
            shutil.rmtree(place.path("out"))
        with kept(place, *options, *more) as script:
            said = expect_end(place, script)
        assert "start 1: begins" in said and "resumed after" not in said and "is now" not in said, said
        assert os.path.exists(place.path("zero-checkpoint-abc/step-00000012/manifest.json")), said


def check_words_that_nobody_takes(place, args):
    """A full disk below the log does not end the run, nor does a reader that is gone."""
    reader, gone = os.pipe()
    os.close(reader)
    program = fake(place, "for i in $(seq 200); do echo line $i; echo line $i >&2; sleep 0.005; done; touch ended")
    for words in (os.open("/dev/full", os.O_WRONLY), gone):
        done = subprocess.run([SCRIPT, "--ranks", "1", "config.toml"], cwd=place.folder, stdout=words, stderr=words, timeout=DEADLINE_SECONDS, env=environment(ZERO_BIN=program))
        assert done.returncode == 0 and os.path.exists(place.path("ended")), done
        os.remove(place.path("ended"))
        os.close(words)


def check_samples(place, args):
    """A number that another process has had is another process."""
    begins = iter([7, 7, 8, 8])
    begun, samples.begun = samples.begun, lambda pid: next(begins, 8)
    try:
        with samples.Sampler(os.getpid()) as sampler:
            end = time.monotonic() + 20
            while sum(map(len, sampler.series.values())) < 4 and time.monotonic() < end:
                time.sleep(0.1)
    finally:
        samples.begun = begun
    assert [len(points) >= 2 for points in sampler.series.values()] == [True, True], sampler.series
    assert {key[:2] for key in sampler.series} == {("the script", os.getpid())}, sampler.series
    assert samples.begun(os.getpid()) > samples.begun(1) and samples.begun(1 << 30) is None


def check_soak(place, args):
    """A short one of what tests/soak/soak.py does for hours."""
    soak = [sys.executable, os.path.join(HERE, "..", "soak", "soak.py"), place.bin, "--seconds", str(args.seconds), "--steps", "250", "--every", "1.5", "--variants", "1",
            "--ranks", "2", "--seed", "3"]
    done = subprocess.run(soak, capture_output=True, text=True, timeout=240, env=environment(TMPDIR=place.folder))
    if done.returncode == 77:
        sys.exit(77)
    assert done.returncode == 0, done.stdout + done.stderr


def main():
    args = arguments(__doc__, seconds=25)
    run_checks(args, globals(), lambda check, folder: check(Place(folder, args.bin, args.data), args))


if __name__ == "__main__":
    main()
