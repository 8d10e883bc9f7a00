"""The model with the lowest validation loss, and runs that end because the loss no longer falls.

usage: test_best.py BIN TESTS_DATA [-k NAME]        exits 1 when something is wrong
"""
import json
import os
import random
import re
import signal
import struct

import test_checkpoints
from checks import arguments, run_checks
from test_checkpoints import wait_for_steps

# The rate does not depend on the number of steps.
RUN = ("--set", 'data.validation=["held.bin"]', "--set", "training.validation_interval=2", "--set", "training.precision=fp32", "--set", "optimizer.lr=0.02",
       "--set", "lr_scheduler.type=constant", "--set", "checkpoint.interval=4", "--set", "checkpoint.keep_best=true", "--set", "training.steps=24")


class Place(test_checkpoints.Place):
    """With validation data in another order than the training data: their loss soon rises again."""

    def __init__(self, folder, bin, data):
        super().__init__(folder, bin, data)
        with open(self.path("tokens.bin"), "rb") as file:
            ids = list(struct.unpack("<400H", file.read(800)))
        random.Random(1).shuffle(ids)
        with open(self.path("held.bin"), "wb") as file:
            file.write(struct.pack("<400H", *ids))


def losses(place, out="out"):
    return {line["step"]: line["validation_loss"] for line in place.metrics(out) if "validation_loss" in line}


def train(place, *options, code=0, **more):
    got, said = place.run(*RUN, *options, **more)
    assert got == code, (got, said)
    return said


def files(folder):
    return {name: open(os.path.join(folder, name), "rb").read() for name in sorted(os.listdir(folder))}


def best_of(validated):
    return min(validated, key=lambda step: (validated[step], step))


def expect_best(place, step, out="out"):
    """best/ is the model that a run of so many steps leaves, with the step."""
    train(place, "--set", f"training.steps={step}", "--set", "checkpoint.keep_best=false", out="short")
    found = files(place.path(out, "best"))
    assert json.loads(found.pop("validation.json"))["step"] == step
    assert found == files(place.path("short", "model")), sorted(found)


def check_best(place):
    train(place)
    validated = losses(place)
    best = best_of(validated)
    assert list(validated) == list(range(2, 25, 2)) and 2 < best < 24, validated  # it falls and rises
    expect_best(place, best)
    train(place, "--overwrite", "--set", "checkpoint.keep_best=false")
    assert not os.path.exists(place.path("out/best"))


def check_patience(place):
    train(place)
    validated, patience = losses(place), 2
    lowest, since, end = None, 0, 24
    for step, loss in validated.items():
        since = 0 if lowest is None or loss < lowest else since + 1
        lowest = loss if lowest is None else min(lowest, loss)
        if since == patience:
            end = step
            break
    assert end < 24, validated
    best = best_of({step: loss for step, loss in validated.items() if step <= end})
    for ranks, stage in ((2, 3), (1, 1), (4, 0)):
        said = train(place, "--set", f"training.patience={patience}", "--set", f"zero.stage={stage}", ranks=ranks, out=f"out{ranks}")
        assert f"the validation loss has not fallen in 2 validations: the run ends after step {end}, its lowest is that of step {best}" in said, said
        assert "model is in" in said, said
    assert max(losses(place, "out2")) == end, losses(place, "out2")
    # once ended, a resumed run ends at the same step, and leaves the same
    before = files(place.path("out2/model"))
    said = train(place, "--set", f"training.patience={patience}", "--resume", out="out2")
    assert files(place.path("out2/model")) == before and f"the run ends after step {end}" in said, said


def check_resumed(place):
    train(place, "--set", "training.patience=3", out="whole")
    process = place.start(*RUN, "--set", "training.patience=3")
    assert wait_for_steps(place, process, 9)
    process.send_signal(signal.SIGUSR1)
    code, said = place.wait(process)
    assert code in (0, 75), said
    if code == 75:
        train(place, "--set", "training.patience=3", "--resume")
    place.expect_same("out", "whole")
    assert files(place.path("out/best")) == files(place.path("whole/best"))


def check_foreign_folder(place):
    """A best model that cannot be written ends no run, and a folder of a user's stays as it is."""
    os.makedirs(place.path("out/best"))
    with open(place.path("out/best/own"), "w") as file:
        file.write("mine")
    for more in ((), ("--overwrite",)):
        said = train(place, *more)
        assert "out/best could not be written: it holds files of somebody else. Training goes on" in said and "model is in" in said, said
        assert os.listdir(place.path("out/best")) == ["own"], os.listdir(place.path("out/best"))


def check_killed_after_the_best(place):
    """A later start knows the loss of the model in best/, which no worse one replaces."""
    train(place, out="whole")
    validated = losses(place, "whole")
    best = best_of(validated)
    process = place.start(*RUN)
    assert wait_for_steps(place, process, best + 3), "the run ended before it was killed"
    process.kill()
    place.wait(process)
    train(place, "--resume")
    place.expect_same("out", "whole")
    assert files(place.path("out/best")) == files(place.path("whole/best"))


def check_held_out_rows(place):
    """A share of the training rows: the same on any ranks, and none of them is trained on."""
    held = ("--set", "data.validation=[]", "--set", "data.validation_fraction=0.1")
    said = train(place, *held, ranks=1)
    count = re.search(r"validation data: (\d+) of the training data's (\d+) rows, held out", said)
    assert count and int(count[1]) == round(0.1 * int(count[2])) and f"{count[1]} of these rows are held out for validation" in said, said
    train(place, *held, "--set", "zero.stage=3", out="other")
    one, two = losses(place), losses(place, "other")
    assert list(one) == list(two) and all(abs(one[step] - two[step]) < 1e-3 for step in one), (one, two)
    code, said = place.run(*RUN, *held, "--set", "data.validation_fraction=0.3", "--resume", "--set", "training.steps=26")
    assert code == 2 and "data.validation_fraction" in said, (code, said)
    for more, words in ((("data.validation_fraction=0.1",), "leave one out"), (("data.validation=[]", "data.validation_fraction=1e-6"), "is 0 of"),
                        (("data.validation=[]", "data.validation_fraction=0.6"), "at least 0 and at most 0.5")):
        code, said = place.run(*RUN, *(word for one in more for word in ("--set", one)), out="never")
        assert code == 2 and words in said, (more, code, said)


def check_refusals(place):
    for settings, key in ((("checkpoint.keep_best=true",), "checkpoint.keep_best"), (("training.patience=1",), "training.patience")):
        code, said = place.run(*(word for setting in settings for word in ("--set", setting)))
        assert code == 2 and f"{key}=" in said and "needs [data] validation or validation_fraction, and [training] validation_interval" in said, (code, said)
    code, said = place.run("--set", "training.patience=-1")
    assert code == 2 and "training.patience=-1" in said, (code, said)


if __name__ == "__main__":
    args = arguments(__doc__)
    run_checks(args, globals(), lambda check, folder: check(Place(folder, args.bin, args.data)))
