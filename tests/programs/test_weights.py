"""data.weights: each file gives its share of the rows, on any layout and over resumptions, for every kind of row.

usage: test_weights.py BIN TESTS_DATA [-k NAME]        exits 1 when something is wrong
"""
import array
import json
import re
import subprocess

import test_preferences
from checks import arguments, environment, mpirun, run_checks
from test_checkpoints import CONFIG, Place

SEQ = 24
SAME = {**CONFIG, "job": {"output_dir": "out", "reproducible": "ranks"},
        "data": {"train": ["tokens.bin", "small.bin"], "weights": [7, 3]},
        "training": {"steps": 10, "seq_len": SEQ, "global_batch_size": 8, "precision": "bf16", "device": "cpu"},
        "lr_scheduler": {"type": "constant"}, "checkpoint": {"interval": 5}}


def tokens(place, name, rows, first=3):
    """A file with so many rows of ids that count upwards."""
    with open(place.path(name), "wb") as file:
        array.array("H", [(first + i) % 500 for i in range(rows * SEQ + 1)]).tofile(file)


def run(place, *settings, ranks=1, words=(), code=0):
    command = (mpirun(ranks) if ranks > 1 else []) + [place.bin + "/zero_train", "config.toml", *words]
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run(command, cwd=place.folder, capture_output=True, text=True, timeout=120, env=environment())
    assert done.returncode == code, (settings, words, done.returncode, done.stdout + done.stderr)
    return done.stdout + done.stderr


def of_runs(args, folder):
    place = Place(folder, args.bin, args.data)
    place.config(SAME)
    tokens(place, "small.bin", 5)
    return place


def check_layouts(args, folder):
    """The same rows on 1, 2 and 4 ranks, and others than without weights."""
    place = of_runs(args, folder)
    said = run(place, "job.output_dir=one")
    assert "small.bin: 30.0 % of the sequences, 4.80 epochs of its 5" in said and re.search(r"tokens\.bin: 70\.0 % of the sequences, [\d.]+ epochs of its \d+", said), said
    for ranks, settings in ((2, ["zero.stage=3"]), (4, ["zero.stage=2", "training.local_batch_size=2"])):
        run(place, f"job.output_dir=on{ranks}", *settings, ranks=ranks)
        place.expect_same(f"on{ranks}", "one")
    run(place, "job.output_dir=ratio", "data.weights=[0.7, 0.3]")
    place.expect_same("ratio", "one")
    for name, weights in (("joined", "[]"), ("even", "[1, 1]")):
        run(place, f"job.output_dir={name}", "data.weights=" + weights)
        assert place.result(name) != place.result("one"), name


def check_resumption(args, folder):
    """Exact in the middle of each file, on other ranks; other weights and files are noticed."""
    place = of_runs(args, folder)
    run(place, "job.output_dir=one")
    run(place, "training.steps=5")
    for setting, words in (("data.weights=[1, 1]", "data.weights=[1, 1]: is [1.0, 1.0] now, and [7.0, 3.0] in"), ("data.weights=[]", "is [] now, and [7.0, 3.0] in"),
                           ('data.train=["small.bin", "tokens.bin"]', "the content differs from that in")):
        said = run(place, setting, words=("--resume",), code=2)
        assert words in said and "--accept-change " + setting.partition("=")[0] in said, (setting, said)
    run(place, ranks=2, words=("--resume",))
    place.expect_same("out", "one")
    said = run(place, "training.steps=12", "data.weights=[1, 1]", words=("--resume", "--accept-change", "data.weights"))
    assert "data.weights [7.0, 3.0] -> [1.0, 1.0]" in said and "small.bin: 50.0 % of the sequences" in said, said


def of_examples(args, folder):
    """Files with an example per line, one of them under the name of a list."""
    place = test_preferences.Place(folder, args.bin, args.data)
    for name, count, answer in (("long.jsonl", 40, " In the beginning God created the heaven and the earth"), ("short.json", 10, " God")):
        with open(place.path(name), "w") as file:
            for number in range(count):
                file.write(json.dumps({"prompt": f"Verse {number}:", "completion": answer}) + "\n")
    return place


BASE = {"data.train": ["long.jsonl", "short.json"], "data.weights": [3, 1], "data.shuffle": True, "training.steps": 5, "training.global_batch_size": 8}


def write(place, **changes):
    """Without [preference]."""
    place.write({}, **BASE, **changes)


def trained(place, out="out"):
    return place.metrics(out)[-1]["trained_tokens"]


def check_examples(args, folder):
    """Unpacked rows show by their trained tokens what each file gave; packed rows and held-out rows are of one file each."""
    place = of_examples(args, folder)
    each = {}
    for name, file in (("long", "long.jsonl"), ("short", "short.json")):
        write(place, **{"job.output_dir": name})
        place.run(f'data.train=["{file}"]', "data.weights=[]")
        each[name] = trained(place, name) / 40
    assert each["long"] > each["short"] + 3, each
    write(place)
    place.run()
    assert trained(place) == 30 * each["long"] + 10 * each["short"], (trained(place), each)
    write(place, **{"data.packing": True, "job.output_dir": "packed"})
    said = place.run("training.seq_len=64", "training.local_batch_size=2", ranks=2)
    assert re.search(r"long\.jsonl: 40 examples in \d+ packed rows", said) and re.search(r"short\.json: 10 examples in \d+ packed rows", said), said
    write(place, **{"job.output_dir": "held", "data.validation_fraction": 0.1, "training.validation_interval": 5})
    said = place.run()
    assert "validation data: 4 of the training data's 40 rows, held out; 1 of the training data's 10 rows, held out" in said, said
    assert "short.json: 25.0 % of the sequences, 1.11 epochs of its 9" in said and "validation_loss" in place.metrics("held")[-1], said
    write(place, **{"job.output_dir": "large"})
    said = place.run("training.steps=1", "training.global_batch_size=50")
    assert "a step of 50 sequences passes over the 10 of short.json 1.2 times: lower the global batch or the weight" in said and "passes over the 40" not in said, said


def check_preferences(args, folder):
    """Pairs and judged answers, with the reference's values and mismatched answers of each row."""
    place = test_preferences.Place(folder, args.bin, args.data)
    for method, files in (("dpo", ["texts.jsonl", "prompts.jsonl"]), ("kto", ["judged.jsonl", "texts.jsonl"])):
        losses = []
        for ranks in (1, 2):
            place.write({"method": method}, f"{method}{ranks}", **{"data.train": files, "data.weights": [3, 1], "training.steps": 4, "job.reproducible": "ranks"})
            said = place.run(ranks=ranks)
            assert f"{files[1]}: 25.0 % of the sequences" in said, said
            losses.append([line["loss"] for line in place.metrics(f"{method}{ranks}")])
        assert losses[0] == losses[1] and len(losses[0]) == 4, losses
    with open(place.path("one.jsonl"), "w") as file:
        file.write('{"prompt": "a", "completion": " b", "label": true}\n')
    place.write({"method": "kto"}, **{"data.train": ["judged.jsonl", "one.jsonl"], "data.weights": [3, 1]})
    said = place.run(code=2)
    assert "one.jsonl: preference.method" in said and "there is one: name files with more" in said, said


def check_preview(args, folder):
    """Each file has its share of the rows that are shown."""
    place = of_examples(args, folder)
    write(place)
    said = place.run(words=("--preview", "8"))
    assert said.count("long.jsonl:") == 6 and said.count("short.json:") == 2, said
    assert place.run("data.weights=[]", words=("--preview", "8")).count("short.json:") == 0


if __name__ == "__main__":
    args = arguments(__doc__)
    run_checks(args, globals(), lambda check, folder: check(args, folder))
