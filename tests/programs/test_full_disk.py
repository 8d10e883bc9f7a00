"""Runs zero_train on a disk that fills up: before the run, while it trains, when it stops, when its result is written, and on one
that is slow. What was trained must be there afterwards: as the result, or as states that zero_export makes the same result of.

usage: test_full_disk.py BIN TESTS_DATA [-k NAME]        exits 1 when something is wrong, 77 where no file system can be mounted
"""
import errno
import os
import re
import shutil
import signal
import subprocess
import sys

import test_records
from checks import arguments, mount_apart, run_checks
from test_checkpoints import Place, ranks_of, wait_for_steps, wait_for_words

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "soak"))
from faults import failing_calls

DISK_BYTES = 24 << 20
STEPS = ("--set", "training.steps=40", "--set", "checkpoint.interval=0")
LORA = ("--set", "lora.r=2", "--set", "optimizer.lr=0.01")


def mount(path, size):
    os.makedirs(path)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", path], check=True)


def fill(path, left):
    """Takes what the disk has free but for `left` bytes, as far as its pages allow. The run may take some of it meanwhile."""
    space = os.statvfs(path)
    missing = max(0, space.f_bavail * space.f_bsize - left)
    with open(os.path.join(path, "filler"), "wb", buffering=0) as file:  # a buffer would be written again, and fail, when it is closed
        while missing > 0:
            try:
                missing -= file.write(b"x" * missing)
            except OSError:
                return


class Disk:
    """A small file system `disk` beside the run, with a place for temporary files on a large one."""

    def __init__(self, place):
        self.place = place
        mount(place.path("disk"), DISK_BYTES)
        self.spare = place.path("spare")
        os.makedirs(self.spare)
        os.environ["TMPDIR"] = self.spare

    def empty(self):
        for name in os.listdir(self.place.path("disk")):
            path = self.place.path("disk", name)
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


def exported(place, states, name):
    """Bytes of every file that zero_export makes of states."""
    out = place.path("exported")
    shutil.rmtree(out, ignore_errors=True)
    done = subprocess.run([place.bin + "/zero_export", states, out], capture_output=True, text=True, cwd=place.folder)
    assert done.returncode == 0, done.stderr
    return files_of(out)


def files_of(folder):
    found = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as file:
            found[name] = file.read()
    return found


def states_told(place, said):
    """The folder of states that an error names."""
    folders = re.findall(r"trained states are in (\S+):", said)
    assert len(folders) == 1, said
    return os.path.join(place.folder, folders[0])


def fill_while_training(place, options, left, out):
    """The disk is full but for `left` bytes after a few steps; (exit code, what was said)."""
    process = place.start(*options, out=out)
    assert wait_for_steps(place, process, 2, out), place.wait(process)
    fill(place.path("disk"), left)
    return place.wait(process)


def check_fills_while_training(place, disk):
    """However little is left: the result is there, or its states are, in the same bits."""
    for kind, options, lefts in (("model", STEPS, (0, 16384, 262144)), ("adapter", STEPS + LORA, (0,))):
        code, said = place.run(*options, out="reference")
        assert code == 0, said
        expected = files_of(place.path("reference", kind))
        shutil.rmtree(place.path("reference"))
        ends = []
        for left in lefts:
            code, said = fill_while_training(place, options, left, "disk/out")
            if code == 0:
                assert files_of(place.path("disk/out", kind)) == expected, (kind, left)
            else:
                assert code == 1 and f"the {kind} could not be written" in said and "No space left" in said, (code, said)
                assert said.count("error: ") == 1, said
                assert exported(place, states_told(place, said), kind) == expected, (kind, left)
                assert not os.path.exists(place.path("disk/out", kind, "model.safetensors")), "half a model"
            ends.append(code)
            disk.empty()
            shutil.rmtree(disk.spare)
            os.makedirs(disk.spare)
        assert 1 in ends, f"{kind}: the disk was never full"


def check_room_is_unknown(place, disk):
    """Where the system does not say how much room there is, the states are saved all the same."""
    failing = failing_calls(place.folder, below=place.folder, at=0, for_good=1, reason=errno.EIO, calls="room")
    os.environ.update(failing)
    try:
        code, said = fill_while_training(place, STEPS, 0, "disk/out")
    finally:
        for name in failing:
            del os.environ[name]
    assert code == 1 and os.path.exists(states_told(place, said) + "/manifest.json"), (code, said)


def check_goes_on_after_a_full_disk(place, disk):
    """What the message says: make room, and run again with --resume, which moves the states home."""
    for kind, options, lefts in (("model", STEPS, (0, 4096, 16384)), ("adapter", STEPS + LORA, (0,))):
        for left in lefts:
            code, said = fill_while_training(place, options, left, "disk/out")
            if code == 0:
                disk.empty()
                continue
            states = states_told(place, said)
            assert not os.path.exists(place.path("disk/out", kind)), os.listdir(place.path("disk/out", kind))
            elsewhere = not states.startswith(place.path("disk/out"))
            if elsewhere:
                code, said = place.run(*options, "--resume", out="disk/out")
                assert code == 2 and os.path.exists(states + "/manifest.json") and not place.checkpoints("disk/out"), (left, code, said)
            os.remove(place.path("disk/filler"))
            code, said = place.run(*options, "--resume", out="disk/out")
            assert code == 0 and "resumed after step 40" in said and (f"{states} is now" in said) == elsewhere, (left, said)
            assert not os.listdir(disk.spare) and not [name for name in os.listdir(place.folder) if name.startswith("zero-checkpoint-")], said
            assert [line["step"] for line in place.metrics("disk/out")] == list(range(1, 41)), "lines that waited for room are lost"
            assert any(name.endswith(".safetensors") for name in os.listdir(place.path("disk/out", kind)))
            disk.empty()


def check_records_wait_for_room(place, disk):
    """metrics.jsonl, event files and the database of trackio wait with one warning each, and have all steps in the end."""
    os.environ["TRACKIO_DIR"] = place.path("disk/trackio")
    records = ("--set", "metrics.tensorboard=true", "--set", "metrics.trackio=project", "--set", "training.steps=300", "--set", "checkpoint.interval=0")
    process = place.start(*records, out="disk/out")
    assert wait_for_steps(place, process, 2, "disk/out"), place.wait(process)
    fill(place.path("disk"), 0)
    names = ("metrics.jsonl", "project.db", ".zero")
    warned = [f"{name}: cannot be written: " for name in names]
    assert all(wait_for_words(place, process, words) for words in warned), place.wait(process)
    os.remove(place.path("disk/filler"))
    code, said = place.wait(process, patience=180)
    del os.environ["TRACKIO_DIR"]
    assert code == 0 and all(said.count(words) == 1 and f"{name} can be written again" in said for name, words in zip(names, warned)), (code, said)
    test_records.expect_records(place, "disk/out", 300, place.path("disk/trackio/project.db"))


def check_trace_is_given_up(place, disk):
    """A trace that outgrows its disk costs one warning, and leaves no part of a file."""
    options = ("--set", "training.steps=8", "--set", "checkpoint.interval=1")
    code, said = place.run(*options, "--set", "training.steps=1")
    assert code == 0, said
    shutil.rmtree(place.path("out/model"))
    os.symlink(place.path("disk"), place.path("out/trace"))
    fill(place.path("disk"), 16 << 10)
    code, said = place.run(*options, "--set", "metrics.trace_steps=[2, 8]", "--resume")
    assert code == 0 and said.count("the trace of steps cannot be written: ") == 1 and "No space left" in said, (code, said)
    assert os.listdir(place.path("disk")) == ["filler"] and len(place.metrics()) == 8, (os.listdir(place.path("disk")), said)


def check_fills_before_a_checkpoint(place, disk):
    """Checkpoints are given up, with a message each; the run goes on, and what it trained is saved."""
    code, said = place.run(*STEPS, out="reference")
    assert code == 0, said
    for asynchronous in ("false", "true"):
        options = ("--set", "training.steps=40", "--set", "checkpoint.interval=10", "--set", "checkpoint.keep=1", "--set", f"checkpoint.asynchronous={asynchronous}")
        code, said = fill_while_training(place, options, 0, "disk/out")
        assert code == 1 and "given up" in said and "the model could not be written" in said, (code, said)
        assert "waiting" not in said.replace("bound by waiting", "") and "lines wait in memory" in said, said
        told = re.findall(r"the checkpoint of step (\d+) is given up", said)
        assert told == sorted(set(told), key=int) and "40" in told and "No space left" in said, said
        states = states_told(place, said)
        shutil.copytree(states, place.path("kept"))
        disk.empty()
        assert exported(place, place.path("kept"), "model") == place.result("reference")
        shutil.rmtree(place.path("kept"))


def check_stops_on_a_full_disk(place, disk):
    """The states of a stopped run go elsewhere, and the run goes on from there when they are moved back."""
    options = ("--set", "training.steps=4000", "--set", "checkpoint.interval=0")
    process = place.start(*options, out="disk/out")
    assert wait_for_steps(place, process, 3, "disk/out")
    fill(place.path("disk"), 0)
    os.kill(ranks_of(process)[0], signal.SIGUSR1)
    code, said = place.wait(process)
    assert code == 1 and "stopped on request after step" in said, (code, said)
    states = states_told(place, said)
    os.remove(place.path("disk/filler"))
    steps = int(os.path.basename(states)[5:])
    code, said = place.run("--resume", "--set", f"training.steps={steps + 2}", "--set", "checkpoint.interval=0", out="disk/out")
    assert code == 0 and f"resumed after step {steps}" in said, said


def check_has_no_room_anywhere(place, disk):
    """Nothing hangs, and the message does not promise what is not there."""
    os.environ["TMPDIR"] = place.path("disk/tmp")
    os.makedirs(place.path("disk/tmp"))
    here = place.folder
    try:
        for name in ("model", "tokens.bin", "config.toml"):
            shutil.move(place.path(name), os.path.join(here, "disk", name))
        place.folder = os.path.join(here, "disk")
        process = place.start(*STEPS)
        assert wait_for_steps(place, process, 2)
        fill(place.folder, 0)
        code = process.wait(timeout=60)
    finally:
        place.folder = here
    assert code == 1, code


def check_is_full_before_the_run(place, disk):
    """Refused before the first step, with the numbers; nothing is written."""
    for left in (0, 8192, 120000):
        fill(place.path("disk"), left)
        code, said = place.run(*STEPS, out="disk/out")
        assert code in (1, 2) and not os.path.exists(place.path("disk/out/metrics.jsonl")) and said.count("error: ") == 1, (left, code, said)
        if code == 2:
            assert "job.output_dir" in said and re.search(r"will write [\d.]+ [KM]iB", said) and "free some" in said, said
        disk.empty()
    # The check knows of the checkpoints that will stay, too.
    code, said = place.run("--set", "checkpoint.interval=1", "--set", "checkpoint.keep=100", out="disk/out")
    assert code == 2 and "checkpoint.keep" in said, (code, said)


def check_has_no_room_for_a_proof(place, disk):
    """What a proof writes lies where --scratch says, which is no key of the configuration."""
    fill(place.path("disk"), 60000)
    done = subprocess.run([place.bin + "/zero_prove", "config.toml", "--only", "stage 0", "--scratch", "disk"], cwd=place.folder, capture_output=True, text=True)
    assert done.returncode == 2 and "its disk has room for" in done.stderr and "--scratch puts it on another disk" in done.stderr, done.stderr
    assert os.listdir(place.path("disk")) == ["filler"], os.listdir(place.path("disk"))


def check_has_no_room_for_ids(place, disk):
    """A text whose ids find no room: refused in one message before the first step, with nothing left behind."""
    os.makedirs(place.path("tokenizer"))
    shutil.copy(os.path.join(place.data, "added-tokens", "tokenizer.model"), place.path("tokenizer"))
    with open(place.path("long.txt"), "w") as file:
        file.writelines(f"In the beginning was line {i}\n" for i in range(200000))
    fill(place.path("disk"), 2 << 20)
    code, said = place.run(*STEPS, "--set", 'data.train=["long.txt"]', "--set", "data.tokenizer=tokenizer/tokenizer.model", out="disk/out")
    assert code in (1, 2) and said.count("error: ") == 1 and "No space left" in said and "token_cache" in said, (code, said)
    assert not os.path.exists(place.path("disk/out/metrics.jsonl"))
    left = [name for _, _, names in os.walk(place.path("disk/out")) for name in names if name.endswith(".tokens") or ".tmp" in name]
    assert not left, left


def check_has_a_slow_text(place, disk):
    """Reading a text takes rank 0 far longer than ranks wait for each other: when it is hashed, tokenised, and looked at again."""
    source, library = place.path("slow_read.c"), place.path("slow_read.so")
    with open(source, "w") as file:
        file.write("""#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void wait_for(int file) {
  char link[64], name[4096];
  const char* rank = getenv("OMPI_COMM_WORLD_RANK");
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, name, sizeof name);
  if (rank && !strcmp(rank, "0") && length > 8 && !memcmp(name + length - 8, "slow.txt", 8)) usleep(2500000);
}
typedef ssize_t (*reader)(int, void*, size_t, off_t);
ssize_t pread(int file, void* to, size_t bytes, off_t at) { wait_for(file); return ((reader)dlsym(RTLD_NEXT, "pread"))(file, to, bytes, at); }
ssize_t pread64(int file, void* to, size_t bytes, off64_t at) { wait_for(file); return ((reader)dlsym(RTLD_NEXT, "pread64"))(file, to, bytes, at); }
""")
    if subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"]).returncode != 0:
        raise AssertionError("cc could not build a library")
    os.makedirs(place.path("tokenizer"))
    shutil.copy(os.path.join(place.data, "added-tokens", "tokenizer.model"), place.path("tokenizer"))
    with open(place.path("slow.txt"), "w") as file:
        file.writelines(f"In the beginning was line {i}\n" for i in range(200))
    os.environ["LD_PRELOAD"] = library
    try:
        for more in ((), ("--overwrite",)):   # the second one finds the ids made
            code, said = place.run("--set", "training.steps=2", "--set", "checkpoint.interval=0", "--set", "comm.deadline_seconds=2", "--set", 'data.train=["slow.txt"]',
                                   "--set", "data.tokenizer=tokenizer/tokenizer.model", *more, out="slow")
            assert code == 0 and " is in slow" in said and ("tokenised slow.txt" in said) == (not more), (more, code, said)
    finally:
        del os.environ["LD_PRELOAD"]


def check_has_a_slow_disk(place, disk):
    """fsync takes far longer than ranks wait for each other."""
    source, library = place.path("slow_sync.c"), place.path("slow_sync.so")
    with open(source, "w") as file:
        file.write("#include <unistd.h>\nint fsync(int file) { (void)file; usleep(2500000); return 0; }\n")
    if subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source]).returncode != 0:
        raise AssertionError("cc could not build a library")
    os.environ["LD_PRELOAD"] = library
    try:
        for stage, more in ((0, ()), (3, LORA)):
            code, said = place.run("--set", "training.steps=2", "--set", "checkpoint.interval=0", "--set", "comm.deadline_seconds=2",
                                   "--set", f"zero.stage={stage}", *more, out=f"slow{stage}{len(more)}")
            assert code == 0 and " is in slow" in said, (stage, code, said)
    finally:
        del os.environ["LD_PRELOAD"]


def run(check, place, data):
    place.data = data
    try:
        check(place, Disk(place))
    finally:
        subprocess.run(["umount", "--lazy", place.path("disk")])


def main():
    args = arguments(__doc__)
    mount_apart()
    run_checks(args, globals(), lambda check, folder: run(check, Place(folder, args.bin, args.data), args.data))


if __name__ == "__main__":
    main()
