"""Runs zero_train with a model whose config.json asks for dropout: training draws it, validation does not, and [model] changes it.

usage: test_dropout.py BIN TESTS_DATA [-k NAME]        exits 1 when something is wrong
"""
import json
import os
import shutil

from checks import arguments, run_checks
from test_checkpoints import Place

SHARES = {"embd_pdrop": 0.1, "attn_pdrop": 0.2, "resid_pdrop": 0.3}
OFF = ["--set", "model.embedding_dropout=0", "--set", "model.attention_dropout=0", "--set", "model.residual_dropout=0"]
CONFIG = {
    "job": {"output_dir": "out"},
    "model": {"path": "gpt2"},
    "data": {"train": ["gpt2.bin"], "validation": ["gpt2.bin"]},
    "training": {"steps": 4, "seq_len": 12, "global_batch_size": 4, "precision": "fp32", "device": "cpu", "validation_interval": 2},
}


class Dropout(Place):
    """GPT-2 with dropout of every kind, and its tokens."""

    def __init__(self, folder, args):
        super().__init__(folder, args.bin, args.data)
        golden = os.path.join(args.data, "families", "gpt2")
        shutil.copytree(os.path.join(golden, "model"), self.path("gpt2"))
        shutil.copy(os.path.join(golden, "tokens.bin"), self.path("gpt2.bin"))
        with open(self.path("gpt2", "config.json")) as file:
            fields = json.load(file)
        os.chmod(self.path("gpt2", "config.json"), 0o644)
        with open(self.path("gpt2", "config.json"), "w") as file:
            json.dump(fields | SHARES, file)
        self.config(CONFIG)

    def train(self, out, *options, **more):
        code, said = self.run(*options, out=out, **more)
        assert code == 0, said
        return said

    def fields(self, out):
        with open(self.path(out, "model", "config.json")) as file:
            return {name: value for name, value in json.load(file).items() if name in SHARES}


def losses(place, out, name):
    return [line[name] for line in place.metrics(out) if name in line]


def check_training_draws_and_validation_does_not(place):
    still = ["--set", "optimizer.lr=1e-30", "--set", "optimizer.weight_decay=0"]
    said = place.train("with", *still)
    assert said.count("dropout in training: embedding 0.1, attention 0.2, residual 0.3") == 1, said
    said = place.train("without", *still, *OFF)
    assert said.count("dropout in training: embedding 0, attention 0, residual 0; config.json of the model: embedding 0.1, attention 0.2, residual 0.3") == 1, said
    validations = losses(place, "with", "validation_loss")
    assert len(validations) == 2 and validations == losses(place, "without", "validation_loss"), validations
    assert all(a != b for a, b in zip(losses(place, "with", "loss"), losses(place, "without", "loss")))
    for out in ("with", "without"):
        assert place.fields(out) == SHARES, place.fields(out)


def check_ranks_and_threads_draw_alike(place):
    same = ["--set", "job.reproducible=ranks", "--set", "training.precision=bf16"]
    place.train("one", *same, ranks=1)
    for ranks, options in ((2, ["zero.stage=3"]), (4, ["zero.stage=1", "activation_checkpoint.mode=full"])):
        place.train(f"on{ranks}", *same, *[word for option in options for word in ("--set", option)], ranks=ranks)
        place.expect_same(f"on{ranks}", "one")
    place.train("threads", *same, ranks=1, threads=2)
    place.expect_same("threads", "one")


def check_a_resumed_run_keeps_its_dropout(place):
    steps = ["--set", "checkpoint.interval=2", "--set", "lr_scheduler.type=constant"]
    place.train("whole", *steps)
    place.train("halves", *steps, "--set", "training.steps=2")
    code, said = place.run("--resume", *steps, "--set", "model.attention_dropout=0.5", out="halves")
    assert code == 2 and "--set model.attention_dropout=0.5: is 0.5 now, and 0.2 in " in said and "--accept-change model.attention_dropout" in said, (code, said)
    # The model's own value, named, is no change.
    place.train("halves", "--resume", *steps, "--set", "model.attention_dropout=0.2")
    assert losses(place, "halves", "loss") == losses(place, "whole", "loss")
    place.expect_same("halves", "whole")


args = arguments(__doc__)
run_checks(args, globals(), lambda check, folder: check(Dropout(folder, args)))
