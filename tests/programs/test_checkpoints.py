"""Runs zero_train as a user does whose machine is unkind: ranks are killed, files are damaged. What a run that was resumed leaves
must be the undisturbed run's to the bit.

usage: test_checkpoints.py BIN TESTS_DATA [-k NAME] [--kills N] [--seed N]        exits 1 when something is wrong
"""
import fcntl
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time

from checks import UNLIKE, ModelPlace, arguments, compare, environment, mpirun, run_checks

DEADLINE_SECONDS = 60
CONFIG = {
    "job": {"output_dir": "out"},
    "model": {"path": "model"},
    "data": {"train": ["tokens.bin"]},
    "training": {"steps": 60, "seq_len": 24, "local_batch_size": 1, "global_batch_size": 4, "precision": "bf16", "device": "cpu"},
    "checkpoint": {"interval": 1},
}


class Place(ModelPlace):
    def __init__(self, folder, bin, data):
        super().__init__(folder, bin, data, CONFIG)

    def start(self, *options, ranks=2, out="out", threads=1):
        """zero_train under mpirun; its messages go to a file."""
        command = [*mpirun(ranks), self.bin + "/zero_train", "config.toml", "--set", f"job.output_dir={out}", *options]
        with open(self.path("said"), "w") as said:
            return subprocess.Popen(command, cwd=self.folder, stdout=said, stderr=subprocess.STDOUT, start_new_session=True,
                                    env=environment(OMP_NUM_THREADS=str(threads)))

    def wait(self, process, patience=DEADLINE_SECONDS):
        """(exit code, what it said)"""
        code = process.wait(timeout=patience)
        with open(self.path("said")) as file:
            return code, file.read()

    def run(self, *options, **more):
        return self.wait(self.start(*options, **more))

    def metrics(self, out="out"):
        """Objects without times, which no two runs share."""
        if not os.path.exists(self.path(out, "metrics.jsonl")):
            return []
        with open(self.path(out, "metrics.jsonl")) as file:
            lines = [json.loads(line) for line in file if line.endswith("\n")]
        return [{k: v for k, v in line.items() if k not in UNLIKE} for line in lines]

    def checkpoints(self, out="out"):
        folder = self.path(out, "checkpoints")
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []

    def has_noted_checkpoints(self, out="out"):
        """Whether the run's mark says that it has written one."""
        if not os.path.exists(self.path(out, ".zero_run")):
            return False
        with open(self.path(out, ".zero_run")) as file:
            return "has written checkpoints" in file.read()

    def result(self, out="out"):
        """Bytes of every file of the model, by name."""
        folder, found = self.path(out, "model"), {}
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), "rb") as file:
                found[name] = file.read()
        return found

    def expect_same(self, out, reference):
        assert self.result(out) == self.result(reference), "the models differ"
        assert self.metrics(out) == self.metrics(reference), "the metrics differ"


def ranks_of(process):
    """Process ids of the ranks of an mpirun."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                words = file.read().rpartition(")")[2].split()
            with open(f"/proc/{name}/comm") as file:
                program = file.read().strip()
        except OSError:
            continue
        if int(words[1]) == process.pid and program == "zero_train" and words[0] != "Z":
            found.append(int(name))
    return found


def wait_for_steps(place, process, steps, out="out", patience=DEADLINE_SECONDS):
    """Until so many objects are in metrics.jsonl; False when the run ended before."""
    end = time.time() + patience
    while len(place.metrics(out)) < steps:
        if process.poll() is not None:
            return False
        assert time.time() < end, f"no {steps} steps in {patience} s"
        time.sleep(0.002)
    return True


def wait_for_words(place, process, words):
    """Until the run has said so; False when it ended before."""
    end = time.time() + DEADLINE_SECONDS
    while True:
        with open(place.path("said")) as file:
            if words in file.read():
                return True
        if process.poll() is not None:
            return False
        assert time.time() < end, f"{words!r} was not said in {DEADLINE_SECONDS} s"
        time.sleep(0.002)


def check_kills(place, args):
    """Ranks of one run, and of what resumes it, are killed again and again, in steps and in checkpoints."""
    kill_again_and_again(place, args, unsaved=1)


def check_kills_behind(place, args):
    """The same while checkpoints are written behind the steps: a rank, or all of them and mpirun."""
    kill_again_and_again(place, args, "--set", "checkpoint.asynchronous=true", unsaved=2, whole_jobs=0.5)


def kill_again_and_again(place, args, *options, unsaved, whole_jobs=0):
    """`unsaved`: steps in metrics.jsonl whose checkpoints need not be there; `whole_jobs`: the part of the kills that leaves nobody."""
    steps_in_all = max(60, 6 * args.kills)
    options += ("--set", f"training.steps={steps_in_all}")
    code, said = place.run("--set", f"training.steps={steps_in_all}", "--set", "checkpoint.interval=0", out="undisturbed")
    assert code == 0, said
    kills, in_writing, complete = 0, 0, []
    process = place.start(*options)
    while kills < args.kills:
        if args.random.random() < 0.2:  # while it starts, or resumes
            time.sleep(args.random.random())
        else:
            done = len(place.metrics()) if kills else 0
            if not wait_for_words(place, process, "resumed after" if complete else " epochs of ") or not wait_for_steps(place, process, done + args.random.randint(0, 4)):
                break
            time.sleep(args.random.random() * 0.03)
        alive = ranks_of(process)
        if process.poll() is not None:
            break
        if not alive:
            continue
        victims = [process.pid, *alive] if args.random.random() < whole_jobs else [args.random.choice(alive)]
        for victim in reversed(victims):
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:  # mpirun was faster
                pass
        code, said = place.wait(process)
        if code == 0:
            break  # it had ended
        kills += 1
        in_writing += any(name.endswith(".tmp") for name in place.checkpoints())
        steps = len(place.metrics())
        complete = [name for name in place.checkpoints() if re.fullmatch(r"step-\d{8}", name)]
        assert not steps or not complete or int(complete[-1][5:]) >= steps - unsaved, (steps, complete)
        process = place.start(*options, "--resume" if complete else "--overwrite") if os.path.exists(place.path("out/config.toml")) else place.start(*options)
    code, said = place.wait(process, patience=DEADLINE_SECONDS + steps_in_all)
    assert code == 0, said
    assert kills >= args.kills * 3 // 4, f"only {kills} kills"
    place.expect_same("out", "undisturbed")
    assert place.checkpoints() == [f"step-{steps_in_all - 1:08d}", f"step-{steps_in_all:08d}"], place.checkpoints()
    print(f"{kills} kills, {in_writing} while a checkpoint was written", end=", ")


def check_two_at_once(place, args):
    """A run that is queued again while the old one lives."""
    process = place.start("--set", "training.steps=100000")
    assert wait_for_steps(place, process, 2)
    for options in (("--resume",), ("--overwrite",)):
        command = ["--oversubscribe"] + (["--allow-run-as-root"] if os.getuid() == 0 else [])
        second = subprocess.run(["mpirun", *command, "-np", "1", place.bin + "/zero_train", "config.toml", "--set", "training.steps=100000", *options], cwd=place.folder,
                                capture_output=True, text=True, timeout=DEADLINE_SECONDS)
        assert second.returncode == 2 and "is in use by another run" in second.stderr, second.stderr
    os.kill(process.pid, signal.SIGUSR1)
    code, said = place.wait(process)
    assert code == 75, said
    code, said = place.run("--resume", "--set", f"training.steps={len(place.metrics()) + 1}")
    assert code == 0, said


def check_damage(place, args):
    options = ("--set", "training.steps=9", "--set", "checkpoint.interval=3", "--set", "checkpoint.keep=5")
    code, said = place.run(*options, out="undisturbed")
    assert code == 0, said
    shutil.copytree(place.path("undisturbed"), place.path("out"))
    shutil.rmtree(place.path("out/checkpoints/step-00000009"))
    os.makedirs(place.path("out/checkpoints/step-00000007.tmp"))
    with open(place.path("out/checkpoints/step-00000006/rank-00001.states"), "r+b") as file:
        file.seek(1000)
        file.write(b"\xff\x00")
    code, said = place.run(*options, "--resume", "--set", "zero.stage=1", ranks=4)
    assert code == 0, said
    assert "rank-00001.states" in said and "block 0" in said and "resumed after step 3" in said and "ranks 2 -> 4" in said, said
    assert place.checkpoints() == ["step-00000003", "step-00000006", "step-00000006.damaged", "step-00000009"], place.checkpoints()
    for name in place.checkpoints():
        with open(place.path("out/checkpoints", name, "manifest.json"), "r+b") as file:
            file.write(b" ")
    code, said = place.run(*options, "--resume")
    assert code == 2 and "no checkpoint there" in said and said.count("error: ") == 1, (code, said)


def check_fp16(place, args):
    options = ("--set", "training.precision=fp16", "--set", "checkpoint.interval=4", "--set", "training.steps=12")
    code, said = place.run(*options, out="undisturbed")
    assert code == 0, said
    shutil.copytree(place.path("undisturbed"), place.path("out"))
    shutil.rmtree(place.path("out/checkpoints/step-00000012"))
    code, said = place.run(*options, "--resume")
    assert code == 0, said
    place.expect_same("out", "undisturbed")


def check_loss_scale(place, args):
    """A loss scale that has come down goes on from where it was, and so do the counts that move it."""
    options = ("--set", "training.precision=fp16", "--set", "checkpoint.interval=4", "--set", "training.steps=12", "--set", "training.seq_len=2")
    code, said = place.run(*options, out="undisturbed")
    assert code == 0, said
    scales = [line["loss_scale"] for line in place.metrics("undisturbed")]
    assert scales[7] < 65536 and place.metrics("undisturbed")[7]["skipped"] > 0, scales  # at the checkpoint that the run goes on from
    shutil.copytree(place.path("undisturbed"), place.path("out"))
    shutil.rmtree(place.path("out/checkpoints/step-00000012"))
    code, said = place.run(*options, "--resume")
    assert code == 0 and "resumed after step 8" in said, said
    place.expect_same("out", "undisturbed")


def check_divergence(place, args):
    """What was trained before a gradient was no number is kept, where no checkpoint holds it."""
    options = ("--set", "optimizer.lr=1e30", "--set", "training.steps=9", "--set", "checkpoint.interval=0")
    code, said = place.run(*options)
    assert code == 1 and "Nothing was updated" in said and "trained states are in out/checkpoints/step-" in said, (code, said)
    names = place.checkpoints()
    assert len(names) == 1 and int(names[0][5:]) == len(place.metrics()), (names, said)
    code, said = place.run(*options, "--resume", "--accept-change", "optimizer.lr", "--set", "optimizer.lr=1e-3")
    assert f"resumed after step {int(names[0][5:])}" in said, said
    # fp16 gives up where its loss scale can fall no lower
    code, said = place.run(*options, "--set", "optimizer.lr=0.5", "--set", "training.precision=fp16", "--set", "training.steps=400", out="half")
    assert code == 1 and "even at a loss scale of 1:" in said and "trained states are in half/checkpoints/step-" in said, (code, said)


def check_checkpoints_missing(place, args):
    """Of a run whose checkpoints are out of sight nothing is removed: of one that logged steps, and of one that logged none."""
    for interval, words in ((1, "trained 2 steps"), (100000, "has written checkpoints")):
        process = place.start("--set", "training.steps=100000", "--set", f"metrics.log_interval={interval}", "--set", "checkpoint.interval=2")
        while not place.has_noted_checkpoints():
            assert process.poll() is None
            time.sleep(0.002)
        for pid in ranks_of(process):
            os.kill(pid, signal.SIGKILL)
        place.wait(process)
        os.rename(place.path("out/checkpoints"), place.path("away"))
        if interval == 1:
            with open(place.path("out/metrics.jsonl"), "r+") as file:
                file.truncate(sum(len(file.readline()) for _ in range(2)))
        with open(place.path("out/metrics.jsonl")) as file:
            before = file.read()
        code, said = place.run("--resume", "--set", "training.steps=100000")
        with open(place.path("out/metrics.jsonl")) as file:
            assert file.read() == before, "records are gone"
        assert code == 2 and words in said and "--overwrite" in said and said.count("error: ") == 1, (code, said)
        os.rename(place.path("away"), place.path("out/checkpoints"))
        code, said = place.run("--resume", "--set", f"training.steps={int(place.checkpoints()[-1][5:13]) + 1}", "--set", f"metrics.log_interval={interval}")
        assert code == 0 and "resumed after step" in said, said
        shutil.rmtree(place.path("out"))


def check_finished(place, args):
    """A run that was stopped, went on and ended is lengthened from its end, not from where it was stopped."""
    process = place.start("--set", "training.steps=200", "--set", "checkpoint.interval=0")
    assert wait_for_steps(place, process, 2)
    os.kill(process.pid, signal.SIGUSR1)
    code, said = place.wait(process)
    assert code == 75, said
    steps = len(place.metrics()) + 3
    for more, told in ((0, False), (0, True), (2, False)):
        code, said = place.run("--resume", "--set", f"training.steps={steps + more}", "--set", "checkpoint.interval=0")
        assert code == 0 and (f"all {steps} steps were done: " in said) == told, said
    assert f"resumed after step {steps}," in said, said
    code, said = place.run("--resume", "--set", f"training.steps={steps + 3}", "--set", "checkpoint.interval=0", threads=2)
    assert code == 0 and f"changed since the checkpoint: threads of a rank 1 -> 2, training.steps {steps + 2} -> {steps + 3}" in said, said


def check_version_1(place, args):
    """A run goes on from a checkpoint that version 0.1.0 wrote in the first format, to the weights that it came to then: processors
    round bf16's products each in its way, which makes 6e-4 of a tensor's largest number; a lost moment makes a hundred times as much."""
    kept = os.path.join(args.data, "checkpoint-1")
    for ranks in (2, 1):
        folder = place.path(f"old-{ranks}")
        shutil.copytree(kept, folder)
        command = [*mpirun(ranks), place.bin + "/zero_train", "c.toml", "--resume"]
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=DEADLINE_SECONDS, env=environment())
        assert ran.returncode == 0 and "resumed after step 3," in ran.stdout + ran.stderr, ran
        compare(f"{folder}/out/model/model.safetensors", f"{kept}/after-6-steps.safetensors", 2e-3)


def check_validation(place, args):
    """Held-out sets that leave ranks without a row; the last step validates too, and the model comes after it."""
    losses = {}
    for windows in (1, 3):
        with open(place.path("tokens.bin"), "rb") as file, open(place.path("held_out.bin"), "wb") as held_out:
            held_out.write(file.read(2 * (24 * windows + 1)))
        for ranks in (1, 2, 4):
            code, said = place.run("--set", "training.steps=2", "--set", "checkpoint.interval=0", "--set", 'data.validation=["held_out.bin"]',
                                   "--set", "training.validation_interval=1", "--set", "training.precision=fp32", ranks=ranks, out=f"out{windows}{ranks}")
            assert code == 0 and place.result(f"out{windows}{ranks}"), said
            losses[windows, ranks] = [line["validation_loss"] for line in place.metrics(f"out{windows}{ranks}")]
        for ranks in (2, 4):
            assert all(abs(a - b) < 1e-5 * b for a, b in zip(losses[windows, ranks], losses[windows, 1])), losses


def check_clock(place, args):
    """Checkpoints by the clock, and runs that end ahead of their time: what goes on from there comes to the same result."""
    assert place.run("--set", "checkpoint.interval=0", "--set", "training.steps=400", out="whole")[0] == 0
    code, said = place.run("--set", "checkpoint.interval=0", "--set", "training.steps=400", "--set", "checkpoint.every_minutes=0.005", "--set", "checkpoint.keep=1000")
    assert code == 0, said
    steps = [int(name[5:]) for name in place.checkpoints()]
    assert len(steps) > 2 and steps[-1] == 400, steps
    place.expect_same("out", "whole")
    run = ("--set", "checkpoint.interval=0", "--set", "job.time_limit=00:03", "--set", "training.steps=1000000")
    code, said = place.run(*run, out="short")
    steps = len(place.metrics("short"))
    assert code == 75 and f"stopped ahead of job.time_limit after step {steps} of 1000000: go on with --resume" in said, (code, said)
    code, said = place.run(*run, "--resume", out="short")
    assert code == 75 and f"resumed after step {steps}," in said and len(place.metrics("short")) > steps, (code, said)
    code, said = place.run("--set", "job.time_limit=00:00", "--set", "training.steps=3", "--set", "checkpoint.interval=0", out="none")
    assert code == 75 and "after step 1 of 3" in said, said
    code, said = place.run("--set", "job.time_limit=2h", out="none")
    assert code == 2 and said.count("time_limit") == 1 and '"12:00:00"' in said, (code, said)


def check_directory_goes(place, args):
    """Somebody removes the output directory under a run whose checkpoints are written behind it."""
    process = place.start("--set", "training.steps=300", "--set", "checkpoint.asynchronous=true", "--set", "checkpoint.interval=7")
    assert wait_for_steps(place, process, 20)
    shutil.move(place.path("out"), place.path("gone"))
    code, said = place.wait(process)
    assert code in (0, 1) and len(re.findall("^checkpoint .*written in", said, re.M)) >= 2, (code, said)
    assert all(re.fullmatch(r"step-\d{8}", name) for name in place.checkpoints()), place.checkpoints()


def check_export(place, args):
    for more in ((), ("--set", "lora.r=2", "--set", "lora.init_lora_weights=pissa")):
        code, said = place.run("--set", "training.steps=3", *more, "--set", "checkpoint.export_dtype=bf16")
        assert code == 0, said
        done = subprocess.run([place.bin + "/zero_export", place.path("out/checkpoints/step-00000003"), place.path("exported")], capture_output=True, text=True, env=environment())
        assert done.returncode == 0, done.stderr
        assert subprocess.run(["diff", "-r", place.path("exported"), place.path("out/adapter" if more else "out/model")]).returncode == 0
        shutil.rmtree(place.path("out"))
        shutil.rmtree(place.path("exported"))


def check_refusals(place, args):
    def refused(*options, pieces, **more):
        code, said = place.run(*options, **more)
        messages = [line for line in said.splitlines() if re.match(r"(\[rank \d+\] )?error: ", line)]
        assert code == 2 and len(messages) == 1 and all(piece in messages[0] for piece in pieces), (options, code, said)

    refused("--resume", pieces=["holds no run to resume", "--resume"])
    refused("--resume", "--overwrite", pieces=["--overwrite"])
    refused("--accept-change", "optimizer.lr", pieces=["--resume"])
    refused("--set", "checkpoint.keep=1000000000", pieces=["checkpoint.keep", "TiB", "output_dir"])
    code, said = place.run("--set", "training.steps=2", "--set", "checkpoint.interval=0")
    assert code == 0, said
    refused("--resume", pieces=["finished run without checkpoints"])
    refused("--set", "training.steps=3", pieces=["no checkpoint to go on from", "pass --overwrite"])
    shutil.rmtree(place.path("out/model"))
    refused("--resume", "--set", "training.steps=2", pieces=["trained 2 steps", "no checkpoint to go on from", "--overwrite"])
    assert len(place.metrics()) == 2
    code, said = place.run("--overwrite", "--set", "training.steps=2")
    assert code == 0, said
    refused("--set", "training.steps=3", pieces=["pass --resume to go on with it, or --overwrite"])
    for pair, pieces in (("optimizer.betas=[0.8, 0.95]", ["--set optimizer.betas", "[0.9, 0.95]", "--accept-change optimizer.betas"]),
                         ("training.seq_len=12", ["seq_len", "12", "24"]), ("training.global_batch_size=8", ["global_batch_size", "8", "4"]),
                         ("training.seed=3", ["seed", "3", "0"]), ("training.steps=1", ["steps", "step 2"])):
        refused("--resume", "--set", "training.steps=2", "--set", pair, pieces=pieces)
    lion = ("--resume", "--set", "training.steps=4", "--set", "optimizer.name=lion")
    code, said = place.run(*lion)
    assert code == 2 and 'optimizer.name=lion: is "lion" now, and "adamw"' in said and "zero_export" in said and "--accept-change" not in said and "betas" not in said, said
    refused(*lion, "--accept-change", "optimizer.name", pieces=['optimizer.name=lion: is "lion" now, and "adamw"', "zero_export"])
    code, said = place.run(*lion, "--accept-change", "optimizer.name", "--dry-run")
    assert code == 2 and 'is "lion" now, and "adamw"' in said, said
    with open(place.path("tokens.bin"), "r+b") as file:
        file.seek(100)
        file.write(b"\x07\x00")
    refused("--resume", "--set", "training.steps=4", pieces=["[data] train", "bytes, "])
    code, said = place.run("--resume", "--set", "training.steps=4", "--set", "training.seed=5")
    assert code == 2 and "[data] train" in said and "\n  and: --set training.seed=5" in said, said
    code, said = place.run("--resume", "--set", "training.steps=4", "--accept-change", "data.train")
    assert code == 0 and "changed since the checkpoint: data.train " in said and "training.steps 2 -> 4" in said and len(place.metrics()) == 4, said


def check_open_batch(place, args):
    """A batch that followed from the ranks stays what it was when a run is resumed with others."""
    place.config({**CONFIG, "training": {key: value for key, value in CONFIG["training"].items() if key != "global_batch_size"}})
    for ranks, steps, options in ((2, 2, ()), (1, 4, ("--resume",)), (2, 6, ("--resume",))):
        code, said = place.run("--set", f"training.steps={steps}", *options, ranks=ranks)
        assert code == 0 and "global batch 2 = " in said, said
    assert len(place.metrics()) == 6
    code, said = place.run("--set", "training.steps=8", "--resume", ranks=4)
    assert code == 2 and "out/config.toml:" in said and "[training] global_batch_size = 2: must be a multiple of local_batch_size x ranks = 1 x 4 = 4" in said, said
    code, said = place.run("--set", "training.steps=2", "--overwrite", ranks=4)  # another run
    assert code == 0 and "global batch 4 = " in said, said


def check_dry_run(place, args):
    """With --resume it compares with the checkpoint, and changes nothing."""
    code, said = place.run("--set", "training.steps=2")
    assert code == 0, said
    before = sorted(os.listdir(place.path("out"))), sorted(os.listdir(place.path("out/checkpoints")))
    longer = ("--resume", "--dry-run", "--set", "training.steps=4")
    code, said = place.run(*longer)
    assert code == 0 and "resumption: the settings that a run keeps are those of the checkpoint of step 2\n" in said and "changed since the checkpoint: training.steps 2 -> 4" in said, said
    code, said = place.run(*longer, "--set", "training.seed=3")
    assert code == 2 and "seed=3: is 3 now, and 0 in" in said and "out/config.toml, or begin" not in said, said
    with open(place.path("config.toml")) as file:
        written = file.read()
    place.config({**CONFIG, "training": {**CONFIG["training"], "seed": 3}})
    said = place.run(*longer)[1]
    assert ", or resume by the run's own out/config.toml, or begin another run" in said, said
    with open(place.path("config.toml"), "w") as file:
        file.write(written)
    code, said = place.run("--resume", "--dry-run", "--set", "training.steps=1")
    assert code == 2 and "its checkpoint is of step 2" in said, said
    for wrong in (("--resume", "--dry-run", "--set", "training.steps=1"), (*longer, "--set", "training.seed=3")):
        # Without mpirun, which forwards the two streams in any order.
        said = subprocess.run([place.bin + "/zero_train", "config.toml", "--set", "job.output_dir=out", *wrong], cwd=place.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=DEADLINE_SECONDS, env=environment()).stdout
        assert said.index("optimizer: ") < said.index("error: "), said  # what was printed first is read first
    code, said = place.run(*longer, "--set", "training.seed=3", "--accept-change", "training.seed")
    assert code == 0 and "of step 2, but for the accepted changes\n" in said and "threads of a rank" not in said, said
    code, said = place.run(*longer, "--accept-change", "lora.R")
    assert code == 2 and "lora.R: there is no such key" in said and "`lora.r`" not in said, said
    code, said = place.run(*longer, "--accept-change", "lora.r")
    assert code == 2 and "--accept-change lora.r: the checkpoint's adapter has the tensors of its own value" in said, said
    assert before == (sorted(os.listdir(place.path("out"))), sorted(os.listdir(place.path("out/checkpoints"))))
    newest = place.path("out/checkpoints/step-00000002")
    # The disk of this machine is too small, that of another is not known.
    many = ("--set", "checkpoint.keep=100000000")
    code, said = place.run(*longer, *many)
    assert code == 2 and "its disk has room for" in said and "lower checkpoint.keep" in said and said.count("error: ") == 1, said
    code, said = place.run("--dry-run", *many, "--ranks-per-node", "2", "--memory", "4GiB", ranks=1)
    assert code == 0, said
    # A checkpoint that a killed run was replacing gets its name back when the run goes on.
    os.rename(newest, newest + ".replaced")
    code, said = place.run(*longer)
    assert code == 0 and "resumption: the settings that a run keeps are those of the checkpoint of step 2\n" in said and os.path.isdir(newest + ".replaced"), said
    os.rename(newest + ".replaced", newest)
    # So does a folder without a manifest.
    manifest = newest + "/manifest.json"
    os.rename(manifest, place.path("kept"))
    code, said = place.run(*longer)
    assert code == 0 and "of the checkpoint of step 1\n" in said and "passed over: out/checkpoints/step-00000002/manifest.json: is missing" in said, said
    os.rename(place.path("kept"), manifest)
    # The dry run warns of another run that uses the folder.
    held = os.open(place.path("out"), os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    assert "warning: out is in use by another run, whose checkpoints may change" in place.run(*longer)[1]
    os.close(held)
    # A run that ends by epochs is counted.
    code, said = place.run("--resume", "--dry-run", "--set", "training.epochs=0.001")
    assert code == 2 and "the run is to end after 1 step, and its checkpoint is of step 2" in said, said
    code, said = place.run(*longer, "--accept-change", "optimizer.lr")
    assert code == 0 and "but for" not in said, said
    code, said = place.run(*longer, "--ranks-per-node", "2", "--memory", "4GiB", ranks=1)
    assert code == 0 and "resumption: not compared, because the estimate is for another machine\n" in said, said
    # States are missing beside a good manifest, or cut: the one before counts, as in the run.
    states = newest + "/rank-00001.states"
    os.truncate(states, 100)
    code, said = place.run(*longer)
    assert code == 0 and "of the checkpoint of step 1\n" in said and "a newer checkpoint is passed over: out/checkpoints/step-00000002/rank-00001.states: has 100 bytes" in said, said
    os.remove(states)
    code, said = place.run(*longer)
    assert code == 0 and "of the checkpoint of step 1\n" in said and "rank-00001.states: is missing" in said, said
    os.remove(place.path("out/checkpoints/step-00000001/rank-00000.states"))
    code, said = place.run(*longer)
    assert code == 2 and "out/checkpoints: no checkpoint there verifies (out/checkpoints/step-00000002/rank-00001.states: is missing)" in said, said
    shutil.rmtree(place.path("out/checkpoints"))
    code, said = place.run(*longer)
    assert code == 2 and "holds a finished run without checkpoints" in said, said
    shutil.rmtree(place.path("out/model"))
    code, said = place.run(*longer)
    assert code == 2 and "holds a run that has trained 2 steps, and no checkpoint to go on from" in said, said
    os.remove(place.path("out/metrics.jsonl"))
    with open(place.path("out/.zero_run")) as file:
        mark = file.read()
    with open(place.path("out/.zero_run"), "w") as file:
        file.write(mark.replace("The run has written checkpoints.\n", ""))
    code, said = place.run(*longer)
    assert code == 0 and "resumption: there is no checkpoint yet: the run begins at step 0\n" in said, said
    shutil.rmtree(place.path("out"))
    os.mkdir(place.path("out"))
    code, said = place.run(*longer)
    assert code == 2 and "holds no run to resume" in said, said


def run_in_places(names, doc):
    """Runs the checks of `names` (a file's globals()), each in a place of its own."""
    args = arguments(doc, kills=12, seed=0)
    args.random = random.Random(args.seed)
    run_checks(args, names, lambda check, folder: check(Place(folder, args.bin, args.data), args))


if __name__ == "__main__":
    run_in_places(globals(), __doc__)
