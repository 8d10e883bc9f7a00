"""Runs zero_train on weights with an infinity that some rows of the data meet, and with rates that break the weights: what
training.on_nonfinite asks for is done by all ranks alike, and told.

usage: test_nonfinite.py BIN TESTS_DATA [-k NAME]        exits 1 when something is wrong
"""
import array
import json
import os
import random
import re
import signal
import struct
import subprocess
import time

from checks import UNLIKE, ModelPlace, arguments, environment, mpirun, run_checks

DEADLINE_SECONDS = 60
SEQ_LEN, WINDOWS, BROKEN_ID = 24, 96, 511
BROKEN_ROWS, BROKEN_STEPS = (17, 40, 41, 83), [5, 11, 21]  # rows in the order of the file, four a step
CONFIG = {
    "job": {"output_dir": "out"},
    "model": {"path": "model"},
    "data": {"train": ["tokens.bin"], "shuffle": False},
    "training": {"steps": 24, "seq_len": SEQ_LEN, "local_batch_size": 1, "global_batch_size": 4, "precision": "bf16", "device": "cpu"},
    "lora": {"r": 4, "target_modules": "all-linear"},
    "checkpoint": {"interval": 2},
}


class Place(ModelPlace):
    """A model with an infinity in the embedding of one id, and data with that id in some rows."""

    def __init__(self, folder, bin, data):
        super().__init__(folder, bin, data, CONFIG)
        drawn = random.Random(5)
        for name, broken in (("tokens.bin", BROKEN_ROWS), ("clean.bin", ()), ("held_out.bin", (0,))):
            ids = array.array("H", (drawn.randrange(BROKEN_ID) for _ in range(SEQ_LEN * WINDOWS + 1)))
            for row in broken:
                ids[row * SEQ_LEN + 7] = BROKEN_ID
            with open(self.path(name), "wb") as file:
                ids.tofile(file)
        self.spoil(BROKEN_ID, float("inf"))

    def spoil(self, id, value):
        with open(self.path("model/model.safetensors"), "r+b") as file:
            size, = struct.unpack("<Q", file.read(8))
            tensor = json.loads(file.read(size))["model.embed_tokens.weight"]
            assert tensor["dtype"] == "F32", tensor
            file.seek(8 + size + tensor["data_offsets"][0] + 4 * tensor["shape"][1] * id)
            file.write(struct.pack("<f", value))

    def start(self, *options, ranks=2, out="out"):
        command = [*mpirun(ranks), self.bin + "/zero_train", "config.toml", "--set", f"job.output_dir={out}", *options]
        with open(self.path("said"), "w") as said:
            return subprocess.Popen(command, cwd=self.folder, stdout=said, stderr=subprocess.STDOUT, start_new_session=True, env=environment())

    def wait(self, process):
        """(exit code, what it said)"""
        code = process.wait(timeout=DEADLINE_SECONDS)
        with open(self.path("said")) as file:
            return code, file.read()

    def run(self, *options, **more):
        return self.wait(self.start(*options, **more))

    def lines(self, out="out"):
        path = self.path(out, "metrics.jsonl")
        if not os.path.exists(path):
            return []
        with open(path) as file:
            return [json.loads(line) for line in file if line.endswith("\n")]

    def metrics(self, out="out"):
        return [{k: v for k, v in line.items() if k not in UNLIKE} for line in self.lines(out)]

    def checkpoints(self, out="out"):
        folder = self.path(out, "checkpoints")
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []

    def passed(self, out="out"):
        """Of the newest checkpoint."""
        with open(self.path(out, "checkpoints", self.checkpoints(out)[-1], "manifest.json")) as file:
            return json.load(file)["position"].get("passed", {}).get("steps", [])

    def adapter(self, out="out"):
        with open(self.path(out, "adapter/adapter_model.safetensors"), "rb") as file:
            return file.read()


def chosen(choice, *more):
    pairs = (f"training.on_nonfinite={choice}", *more)
    return [word for pair in pairs for word in ("--set", pair)]


def lines_of(said, word):
    return [line for line in said.splitlines() if line.startswith(word + ": ")]


def without_loss(metrics):
    return [line["step"] for line in metrics if line["loss"] is None]


def check_stop(place, args):
    for ranks in (1, 2, 4):
        code, said = place.run("--set", "training.max_rollbacks=2", ranks=ranks, out=f"out{ranks}")
        errors = lines_of(said, "error")
        assert lines_of(said, "warning") == ['warning: --set training.max_rollbacks=2: has no effect with training.on_nonfinite = "stop": it is for "rollback"'], said
        assert code == 1 and len(errors) == 1, (code, said)
        told = re.search(r"step (\d+): the gradients' norm is nan; the loss of rank (\d) is nan, in micro-batch (\d) \(row (\d+) of the training data\); "
                         r"gradients are not finite from base_model.*layers\.0.* \(unit 1\) to .* \(unit \d\); weights that are not trained are not "
                         r"finite in model\.embed_tokens\.weight \(unit 0\): the model that training began with has them so\. Nothing was updated", errors[0])
        assert told and int(told[4]) in BROKEN_ROWS and int(told[2]) < ranks and int(told[3]) < 4 // ranks, errors
        assert int(told[1]) == BROKEN_STEPS[0] and [line["step"] for line in place.metrics(f"out{ranks}")] == [1, 2, 3, 4], said


def check_skip(place, args):
    code, said = place.run(*chosen("skip"))
    assert code == 0, said
    metrics = place.metrics()
    skipped = BROKEN_STEPS
    assert without_loss(metrics) == skipped and len(metrics) == 24, metrics
    told = [int(re.match(r"warning: step (\d+): the gradients' norm is nan; .* The step is skipped \(", line)[1]) for line in lines_of(said, "warning")]
    assert told == skipped == place.passed(), (told, skipped, said)
    assert [line["skipped"] for line in metrics] == [sum(step <= line["step"] for step in skipped) for line in metrics]
    assert f"{len(skipped)} of the steps skipped" in said, said
    # records are thinned out, but for those of skipped steps
    code, said = place.run(*chosen("skip", "metrics.log_interval=100"), out="thin")
    assert code == 0 and sorted({*skipped, 24}) == [line["step"] for line in place.metrics("thin")], said
    code, said = place.run(*chosen("skip", f"training.steps={skipped[-1]}"), out="last")
    assert code == 0 and re.search(rf"; loss \d+\.\d{{4}} in step {skipped[-1] - 1}, the last step was passed over, {len(skipped)} of the steps skipped", said), said
    # the same with the rows met on other ranks
    code, said = place.run(*chosen("skip", "zero.stage=1"), ranks=4, out="other")
    assert code == 0 and without_loss(place.metrics("other")) == skipped, said
    code, said = place.run(*chosen("skip", "training.epochs=8", "training.max_skipped_steps=1", "training.global_batch_size=24"), out="many")
    assert code == 1 and "more in a row than training.max_skipped_steps allows" in said and len(lines_of(said, "error")) == 1, said


def check_rollback(place, args):
    assert place.run(*chosen("skip"), out="skip")[0] == 0
    code, said = place.run(*chosen("rollback"), out="whole")
    assert code == 0 and place.adapter("whole") == place.adapter("skip"), said
    assert place.passed("whole") == without_loss(place.metrics("whole")) == BROKEN_STEPS, said
    assert [line["step"] for line in place.metrics("whole")] == list(range(1, 25)), said
    assert [line["step"] for line in place.lines("whole") if line["tokens_per_second"] == 0] == BROKEN_STEPS, place.lines("whole")
    assert said.count("Back to the newest checkpoint") == said.count("is passed over") == 3, said
    # killed again and again, and stopped
    process, end = place.start(*chosen("rollback")), time.time() + DEADLINE_SECONDS
    for attempt in range(8):
        done = len(place.metrics())
        while process.poll() is None and len(place.metrics()) < done + 3 and time.time() < end:
            time.sleep(0.002)
        if process.poll() is not None:
            break
        if attempt % 2:
            os.kill(process.pid, signal.SIGUSR1)
        else:
            os.killpg(process.pid, signal.SIGKILL)
        code, said = place.wait(process)
        time.sleep(0.3)
        process = place.start("--resume", *chosen("rollback"))
    code, said = place.wait(process)
    assert code == 0, said
    assert place.metrics() == place.metrics("whole") and place.adapter() == place.adapter("whole") and place.passed() == place.passed("whole"), said


def check_without_checkpoint(place, args):
    code, said = place.run(*chosen("rollback", "checkpoint.interval=1000"))
    assert code == 1 and "The run does not go back: there is no checkpoint to go back to. Lower optimizer.lr, or" in said and len(lines_of(said, "error")) == 1, said
    code, said = place.run(*chosen("rollback", "checkpoint.interval=0"), out="refused")
    assert code == 2 and "[training] on_nonfinite" in said.replace("training.on_nonfinite", "[training] on_nonfinite") and "needs checkpoints" in said, said


def check_validation(place, args):
    """A validation loss that is not finite is no step's matter."""
    code, said = place.run(*chosen("rollback", 'data.train=["clean.bin"]', 'data.validation=["held_out.bin"]', "training.validation_interval=3"))
    metrics = place.metrics()
    assert code == 0 and len(metrics) == 24 and not without_loss(metrics) and not lines_of(said, "warning"), said
    assert all(line["validation_loss"] is None for line in metrics if "validation_loss" in line), metrics


def check_states(place, args):
    """Weights that an update has broken are never saved."""
    place.spoil(BROKEN_ID, 0.5)
    sections = {name: keys for name, keys in CONFIG.items() if name != "lora"}
    place.config(sections)
    broken = ("optimizer.lr=1e30", "optimizer.weight_decay=1e30", "training.precision=fp32")
    for choice in ("stop", "skip", "rollback"):
        code, said = place.run(*chosen(choice, *broken, "checkpoint.interval=1"), out=choice)
        assert code == 1 and not place.checkpoints(choice) and len(lines_of(said, "error")) == 1 and "states" in lines_of(said, "error")[0], said
        assert not os.path.exists(place.path(choice, "model")), said
    code, said = place.run(*chosen("stop", "training.steps=4", "training.precision=fp32"))
    assert code == 0, said
    accept = ("--resume", "--accept-change", "optimizer.lr", "--accept-change", "optimizer.weight_decay")
    code, said = place.run(*accept, *chosen("stop", *broken, "job.time_limit=0:00"))
    assert code == 75 and "--resume goes on from step 4" in said and place.checkpoints() == ["step-00000002", "step-00000004"], said
    code, said = place.run(*accept, *chosen("rollback", *broken))
    assert code == 1 and "it has done so 5 times" in said and place.checkpoints() == ["step-00000002", "step-00000004"], said


if __name__ == "__main__":
    args = arguments(__doc__)
    run_checks(args, globals(), lambda check, folder: check(Place(folder, args.bin, args.data), args))
