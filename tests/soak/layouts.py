#!/usr/bin/env python3
"""Trains random configurations with job.reproducible = "ranks", each in random layouts: ranks, threads, stage, shard group, micro-batches,
recomputation, offload, asynchronous checkpoints. The second run is then taken up from a checkpoint in its middle in a third layout.
Losses and norms of every step and every file of the result must be one run's to the bit.

usage: layouts.py BIN [--first 1] [--count 20]

A configuration follows from its number alone. One line for each that differs or fails, one for all at the end. Exits 1 on these.
"""
import argparse
import array
import collections
import glob
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "programs"))
from checks import UNLIKE, environment, mpirun

PATIENCE_SECONDS = 600
IDS = 60  # all vocabularies of tests/data have as many

Layout = collections.namedtuple("Layout", "ranks threads settings")


class Wrong(Exception):
    pass


class Place:
    """A folder with data, in which runs are made."""

    def __init__(self, folder, program):
        self.folder, self.program = folder, program
        os.mkdir(os.path.join(folder, "disk"))
        draw = random.Random(1)
        with open(os.path.join(folder, "tokens.bin"), "wb") as file:
            array.array("H", (draw.randrange(IDS) for _ in range(3100))).tofile(file)
        with open(os.path.join(ROOT, "examples", "data", "kjv.txt")) as bible:
            words = bible.read(67000)
        for name, text in (("some.txt", words[:60000]), ("held_out.txt", words[60000:])):
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
        open(os.path.join(folder, "config.toml"), "w").close()

    def clear(self):
        for name in ("one", "other"):
            shutil.rmtree(os.path.join(self.folder, name), ignore_errors=True)

    def run(self, settings, layout, output, *options):
        command = [*mpirun(layout.ranks), self.program, "config.toml", "--set", f"job.output_dir={output}", *options]
        for key, value in {**settings, **layout.settings}.items():
            command += ["--set", f"{key}={json.dumps(value)}"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE_SECONDS,
                              env=environment(OMP_NUM_THREADS=str(layout.threads), OMP_WAIT_POLICY="passive"))
        if done.returncode:
            errors = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("error")]
            raise Wrong(f"exit code {done.returncode} in {layout}: {' | '.join(errors)[:400]}")

    def result(self, output):
        """Lines of metrics.jsonl, and files of weights."""
        with open(os.path.join(self.folder, output, "metrics.jsonl")) as file:
            curve = [{key: value for key, value in json.loads(line).items() if key not in UNLIKE} for line in file]
        weights = {}
        for path in glob.glob(os.path.join(self.folder, output, "*", "*.safetensors")):
            with open(path, "rb") as file:
                weights[os.path.relpath(path, os.path.join(self.folder, output))] = file.read()
        if not curve or not weights:
            raise Wrong("no curve, or no weights")
        return curve, weights

    def cut(self, output):
        """Leaves of the run what it had half-way."""
        checkpoints = os.path.join(self.folder, output, "checkpoints")
        steps = sorted(os.listdir(checkpoints))
        for step in steps:
            if step != steps[(len(steps) - 1) // 2]:
                shutil.rmtree(os.path.join(checkpoints, step))
        for result in ("model", "adapter"):
            shutil.rmtree(os.path.join(self.folder, output, result), ignore_errors=True)


def data_settings(draw):
    models = ["llama-tiny"] * 4 + sorted(glob.glob(os.path.join(ROOT, "tests", "data", "*", "model")) +
                                         glob.glob(os.path.join(ROOT, "tests", "data", "families", "*", "model")))
    model = draw.choice(models)
    if os.path.isabs(model):
        settings = {"model.path": model, "data.train": ["tokens.bin"], "training.seq_len": draw.choice([7, 8, 13, 24])}
        held_out = "tokens.bin"
    else:
        examples = os.path.join(ROOT, "examples", "data")
        settings = {"model.preset": model, "model.vocab_size": 32000, "data.tokenizer": os.path.join(examples, "tinyllama-tokenizer.model"),
                    "data.train": ["some.txt"], "training.seq_len": draw.choice([48, 65, 96])}
        held_out = "held_out.txt"
        if draw.random() < 0.6:
            settings.update({"data.train": [os.path.join(examples, "humaneval-chat.jsonl")], "data.chat_template": "zephyr",
                             "data.packing": draw.random() < 0.6, "training.seq_len": draw.choice([200, 256])})
    if draw.random() < 0.4:
        settings.update({"data.validation": [held_out], "training.validation_interval": draw.choice([1, 2, 3])})
    return settings


def lora_settings(draw, model):
    settings = {"lora.r": draw.choice([1, 3, 8]), "lora.target_modules": "all-linear", "lora.lora_dropout": draw.choice([0, 0.2])}
    kind = draw.choice(["", "", "use_dora", "nf4", "int8", "gaussian", "pissa", "loraplus"])
    kind = "" if kind == "pissa" and "gpt2" in model else kind  # whose weights lie the other way
    return {**settings, **{"use_dora": {"lora.use_dora": True}, "nf4": {"lora.quantization": "nf4"}, "int8": {"lora.quantization": "int8"},
                           "gaussian": {"lora.init_lora_weights": "gaussian"}, "pissa": {"lora.init_lora_weights": "pissa"},
                           "loraplus": {"lora.loraplus_lr_ratio": 4.0}}.get(kind, {})}


def settings_of(draw):
    rows = draw.choice([8, 8, 16, 24])
    settings = {**data_settings(draw), "job.reproducible": "ranks", "job.reproducible_rows": draw.choice([1, 1, 2]) if rows == 16 else 1,
                "training.steps": draw.choice([3, 5, 7]), "training.global_batch_size": rows,
                "training.precision": draw.choice(["fp32", "bf16", "bf16", "fp16"]), "training.seed": draw.randrange(1000),
                "training.max_norm": draw.choice([0, 1.0, 0.1]), "training.on_nonfinite": draw.choice(["stop", "stop", "skip"]),
                "optimizer.name": draw.choice(["adamw", "adamw", "adamw8bit", "sgd", "lion"]), "optimizer.lr": draw.choice([1e-2, 1e-3]),
                "lr_scheduler.type": draw.choice(["constant", "linear", "cosine", "wsd"]), "lr_scheduler.warmup_steps": draw.choice([0, 2]),
                "checkpoint.interval": draw.choice([1, 2]), "checkpoint.keep": 50}
    return {**settings, **(lora_settings(draw, settings.get("model.path", "")) if draw.random() < 0.45 else {})}


def layout_of(draw, settings):
    rows, at_once = settings["training.global_batch_size"], settings["job.reproducible_rows"]
    ranks = draw.choice([n for n in (1, 2, 4, 8) if rows % (n * at_once) == 0])
    chosen = {"zero.stage": draw.randrange(4), "training.local_batch_size": draw.choice([n for n in (1, 2, 3, 4) if rows % (n * ranks) == 0])}
    if ranks >= 4 and draw.random() < 0.4:
        chosen["zero.shard_degree"] = draw.choice([1, 2, 4])
    if draw.random() < 0.4:
        chosen["activation_checkpoint.mode"] = draw.choice(["full", "selective", "attention"])
    if draw.random() < 0.25:
        chosen.update({"offload.optimizer": "nvme", "offload.nvme_dir": "disk"})
    if chosen["zero.stage"] == 3 and draw.random() < 0.25:
        chosen.update({"offload.parameters": "nvme", "offload.nvme_dir": "disk"})
    if draw.random() < 0.2:
        chosen["comm.shared_memory"] = "off"
    if draw.random() < 0.3:
        chosen["checkpoint.asynchronous"] = True
    if "lora.r" in settings and draw.random() < 0.3:
        chosen["zero.frozen"] = "keep"
    return Layout(ranks, draw.choice([1, 1, 2, 3]), chosen)


def try_one(place, number):
    """Throws Wrong."""
    draw = random.Random(number)
    settings = settings_of(draw)
    layouts = [layout_of(draw, settings) for _ in range(3)]
    place.clear()
    place.run(settings, layouts[0], "one")
    one = place.result("one")
    place.run(settings, layouts[1], "other")
    for turn in range(2):
        other = place.result("other")
        if one != other:
            what = "losses or norms" if one[0] != other[0] else "weights"
            raise Wrong(f"other {what} {'after a resumption' if turn else ''}: {settings} in {layouts}")
        if turn == 0:
            place.cut("other")
            place.run(settings, layouts[2], "other", "--resume")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=os.path.abspath)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    args = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        place = Place(folder, os.path.join(args.bin, "zero_train"))
        for number in range(args.first, args.first + args.count):
            try:
                try_one(place, number)
            except (Wrong, subprocess.TimeoutExpired) as found:
                wrong += 1
                print(f"{number}: {found}", flush=True)
    print(f"{args.count - wrong} of {args.count} configurations have one run's bits in their layouts")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
