"""Preference training: the losses of TRL's trainers, on every layout, with its reference, stopped, resumed, evaluated and refused.

usage: test_preferences.py BIN TESTS_DATA [-k NAME]        exits 1 when something is wrong
"""
import json
import math
import os
import re
import shutil
import signal
import subprocess

from checks import arguments, environment, mpirun, read_safetensors, run_checks
from test_checkpoints import wait_for_steps

FIGURES = ("rewards/chosen", "rewards/rejected", "rewards/margins", "rewards/accuracies", "logps/chosen", "logps/rejected", "grad_norm")
SHARED = (*FIGURES, "kl")  # where TRL has them


class Place:
    """A folder with the model and the pairs of tests/data/preferences."""

    def __init__(self, folder, bin, data):
        self.folder, self.bin, self.data = folder, bin, os.path.join(data, "preferences")
        shutil.copytree(os.path.join(self.data, "model"), self.path("model"))
        for name in ("texts.jsonl", "prompts.jsonl", "chats.jsonl", "judged.jsonl"):
            shutil.copy(os.path.join(self.data, name), self.path(name))
        with open(os.path.join(self.data, "trl.json")) as file:
            self.trl = json.load(file)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, settings, out="out", **changes):
        """A configuration that trains as TRL did."""
        keys = {"job.output_dir": out, "model.path": "model", "data.train": ["texts.jsonl"], "data.shuffle": False, "training.steps": self.trl["steps"],
                "training.seq_len": 512, "training.global_batch_size": self.trl["batch"], "training.precision": "fp32", "optimizer.lr": self.trl["lr"],
                "optimizer.betas": [0.9, 0.999], "optimizer.eps": self.trl["eps"], "optimizer.weight_decay": 0.0, "lr_scheduler.type": "constant",
                **{"preference." + key: value for key, value in settings.items()}, **changes}
        sections = {}
        for key, value in keys.items():
            section, name = key.split(".", 1)
            sections.setdefault(section, []).append(f"{name} = {json.dumps(value)}\n")
        with open(self.path("config.toml"), "w") as file:
            file.writelines(f"[{section}]\n" + "".join(lines) for section, lines in sections.items())

    def command(self, ranks, options):
        return (mpirun(ranks) if ranks > 1 else []) + [os.path.join(self.bin, "zero_train"), "config.toml"] + [word for option in options for word in ("--set", option)]

    def start(self, *options, ranks=1, words=()):
        return subprocess.Popen(self.command(ranks, options) + list(words), cwd=self.folder, env=environment(), stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, errors="replace")

    def run(self, *options, ranks=1, code=0, words=()):
        process = self.start(*options, ranks=ranks, words=words)
        said = process.communicate(timeout=120)[0]
        assert process.returncode == code, (options, process.returncode, said)
        return said

    def metrics(self, out="out"):
        if not os.path.exists(self.path(out, "metrics.jsonl")):
            return []
        with open(self.path(out, "metrics.jsonl")) as file:
            return [json.loads(line) for line in file if line.endswith("\n")]


def settings_of(case):
    return {key: value for key, value in case.items() if key not in ("losses", "figures")}


def expect_trl(place, case, tolerance=1e-4):
    lines = place.metrics()
    assert len(lines) == len(case["losses"]), lines
    for line, loss, figures in zip(lines, case["losses"], case["figures"]):
        assert abs(line["loss"] - loss) <= tolerance * max(1, abs(loss)), (line["step"], line["loss"], loss)
        for name in SHARED:
            if name not in figures:
                continue
            far = abs(line[name] - figures[name])
            assert far <= tolerance * max(1, abs(figures[name])), (line["step"], name, line[name], figures[name])


def check_trains_as_trl(place):
    """All terms of the loss. Two ranks train on the same pairs as one."""
    for number, (name, case) in enumerate(place.trl["cases"].items()):
        place.write(settings_of(case), **{"data.train": [name.split()[0] + ".jsonl"]})
        place.run("training.local_batch_size=" + str(1 + number % 2), f"zero.stage={number % 4}", ranks=1 + number % 2)
        expect_trl(place, case)
        shutil.rmtree(place.path("out"))


def check_every_layout(place):
    layouts = [(2, ("parallel.tensor=2",)), (2, ("parallel.context=2",)), (2, ("parallel.pipeline=2", "zero.stage=1")), (4, ("zero.stage=3",)),
               (4, ("parallel.tensor=2", "parallel.context=2"))]
    for number, name in enumerate(("chats likelihood", "judged kto weighted", "prompts orpo", "texts sigmoid")):
        case = place.trl["cases"][name]
        place.write(settings_of(case), **{"data.train": [name.split()[0] + ".jsonl"]})
        for ranks, options in layouts[number % 2::2]:  # neighbouring cases share none
            place.run(*options, ranks=ranks)
            expect_trl(place, case)
            shutil.rmtree(place.path("out"))
    place.write(settings_of(place.trl["cases"]["texts sigmoid"]))
    curves = []
    for ranks in (1, 2, 3):
        place.run("job.reproducible=ranks", "training.global_batch_size=6", ranks=ranks)
        curves.append([(line["loss"], line["grad_norm"]) for line in place.metrics()])
        shutil.rmtree(place.path("out"))
    assert curves[0] == curves[1] == curves[2], curves


def check_validates_with_an_adapter(place):
    """An adapter's reference is the base alone. A validation has the same figures as a step."""
    place.write(settings_of(place.trl["cases"]["chats sigmoid"]), **{"data.train": ["chats.jsonl"], "data.validation": ["chats.jsonl"], "lora.r": 4,
                                                                     "training.validation_interval": 3, "training.local_batch_size": 2})
    said = place.run("optimizer.lr=0.02", ranks=2)
    first, third, last = (place.metrics()[index] for index in (0, 2, -1))
    assert abs(first["loss"] - 0.693147) < 1e-5 and first["rewards/chosen"] == 0, first
    for name in FIGURES[:-1]:
        assert "validation_" + name in third and "validation_" + name not in first, third
    assert last["validation_loss"] < 0.6 and last["validation_rewards/accuracies"] > 0.7, last
    assert "accuracy" in said and "(accuracy" in said and "computing the log-probabilities of 48 rows" in said, said


def check_keeps_few_compiled_products(place):
    """oneDNN compiles a product for each length of a row. Kept without a bound, they take hundreds of MiB."""
    place.write(settings_of(place.trl["cases"]["texts sigmoid"]), **{"training.steps": 24, "training.global_batch_size": 2})
    for cache in ("LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY"):
        os.environ.pop(cache, None)
    said = place.run()
    assert int(re.search(r"the whole process of rank 0 (\d+) MiB", said).group(1)) < 330, said


def check_resumes_with_the_same_reference(place):
    place.write(settings_of(place.trl["cases"]["texts sigmoid"]), **{"training.steps": 24, "checkpoint.interval": 4})
    place.run("job.output_dir=whole")
    expected = place.metrics("whole")
    process = place.start()
    assert wait_for_steps(place, process, 6), process.communicate()
    os.kill(process.pid, signal.SIGUSR1)
    process.communicate(timeout=60)
    assert process.returncode == 75, process.returncode
    stored = place.path("out", "reference.safetensors")
    bytes_of = lambda: open(stored, "rb").read()
    kept = bytes_of()
    said = place.run(words=("--resume",))
    assert "computing the log-probabilities" not in said, said
    same = lambda: [(line["loss"], line["rewards/margins"]) for line in place.metrics()] == [(line["loss"], line["rewards/margins"]) for line in expected]
    assert same(), (place.metrics(), expected)
    for harm in (lambda: os.remove(stored), lambda: open(stored, "r+b").truncate(len(kept) - 3), lambda: open(stored, "wb").write(kept[:-5] + b"12345")):
        shutil.rmtree(place.path("out"))
        process = place.start()
        assert wait_for_steps(place, process, 6), process.communicate()
        os.kill(process.pid, signal.SIGUSR1)
        process.communicate(timeout=60)
        harm()
        said = place.run(words=("--resume",))
        assert "reference.safetensors" in said and "computing the log-probabilities" in said, said
        assert said.count("are computed again") == 1, said  # one warning for all parts
        assert same(), (place.metrics(), expected)


def check_resolved_configurations_read_back(place):
    """config.toml of a run, and what --write and the planner make of it."""
    for method, more in (("dpo", {"loss_type": ["ipo", "sft"], "loss_weights": [1.0, 0.5]}), ("orpo", {}), ("kto", {"desirable_weight": 1.5})):
        place.write({"method": method, **more}, **{"data.train": ["judged.jsonl" if method == "kto" else "texts.jsonl"], "checkpoint.interval": 3})
        place.run("training.steps=3")
        first = place.metrics()
        shutil.move(place.path("out", "config.toml"), place.path("again.toml"))
        shutil.copy(place.path("again.toml"), place.path("out", "config.toml"))
        process = subprocess.run([os.path.join(place.bin, "zero_train"), "again.toml", "--set", "job.output_dir=again"], cwd=place.folder, env=environment(),
                                 capture_output=True, text=True)
        assert process.returncode == 0, process.stdout + process.stderr
        assert [line["loss"] for line in place.metrics("again")] == [line["loss"] for line in first], method
        said = place.run("training.steps=6", words=("--resume",))
        assert "training.steps" in said and len(place.metrics()) == 6, said
        for folder in ("out", "again"):
            shutil.rmtree(place.path(folder))


def rows_computed(said):
    """How many rows a run's log says that it computes the reference of; 0 without such a line."""
    words = said.split("computing the log-probabilities of ")
    return int(words[1].split()[0]) if len(words) > 1 else 0


def reference_of(place, name="training", out="out"):
    """[row][sequence]; NaN where there is no value"""
    shape, values = read_safetensors(place.path(out, "reference.safetensors"))[name][1:]
    return [values[row * shape[1]:(row + 1) * shape[1]] for row in range(shape[0])]


def known_rows(place, **more):
    return sum(not math.isnan(row[0]) for row in reference_of(place, **more))


def check_stops_while_the_reference_is_computed(place):
    """What was computed is kept, and a resumption goes on from there to the same losses."""
    with open(place.path("texts.jsonl")) as file:
        lines = file.readlines()
    count = len(lines) * 12
    with open(place.path("many.jsonl"), "w") as file:
        file.writelines(lines * 12)
    place.write({"method": "dpo"}, **{"data.train": ["many.jsonl"], "training.global_batch_size": count, "training.local_batch_size": 1, "training.steps": 1})
    place.run("job.output_dir=whole", ranks=2)
    process = place.start(ranks=2)
    for line in process.stdout:
        if "computing the log-probabilities" in line:
            break
    os.kill(process.pid, signal.SIGUSR1)
    said = process.communicate(timeout=60)[0]
    assert process.returncode == 75 and "stopped on request while the reference was computed" in said and "a checkpoint follows" not in said, (process.returncode, said)
    kept = known_rows(place)
    assert 0 < kept < count and place.metrics() == [], kept
    assert "pass --resume to go on with it" in place.run(code=2)
    said = place.run("job.time_limit=0:00:01", ranks=2, words=("--resume",), code=75)  # not even one batch fits, but one is computed
    assert "ahead of job.time_limit while the reference was computed" in said and rows_computed(said) == count - kept, said
    more = known_rows(place)
    assert kept < more < count and more % 2 == 0, (more, kept)
    said = place.run(ranks=2, words=("--resume",))
    assert rows_computed(said) == count - more and known_rows(place) == count, said
    assert reference_of(place) == reference_of(place, out="whole")
    assert [line["loss"] for line in place.metrics()] == [line["loss"] for line in place.metrics("whole")]


def check_another_model_is_no_reference(place):
    """Neither is it where a run was stopped before its first step, nor where more rows are reached."""
    place.write({"method": "dpo"}, **{"training.steps": 2, "checkpoint.interval": 2})
    weights = place.path("model", "model.safetensors")
    original = open(weights, "rb").read()
    place.run()
    assert known_rows(place) == 2 * place.trl["batch"]
    values = reference_of(place)
    said = place.run("training.steps=3", words=("--resume",))
    assert rows_computed(said) == place.trl["batch"] and reference_of(place)[:8] == values[:8], said
    changed = bytearray(original)
    changed[-2] ^= 1
    os.chmod(weights, 0o644)
    open(weights, "wb").write(changed)
    said = place.run("training.steps=4", words=("--resume",), code=2)
    assert "reference.safetensors: lacks values" in said and "has changed since" in said, said
    open(weights, "wb").write(original)
    assert rows_computed(place.run("training.steps=4", words=("--resume",))) == place.trl["batch"]
    shutil.rmtree(place.path("out", "checkpoints"))  # as if the run had been stopped before its first step
    shutil.rmtree(place.path("out", "model"))
    open(place.path("out", "metrics.jsonl"), "w").close()
    with open(place.path("out", ".zero_run")) as file:
        mark = file.read()
    with open(place.path("out", ".zero_run"), "w") as file:
        file.write(mark.replace("The run has written checkpoints.\n", ""))
    open(weights, "wb").write(changed)
    said = place.run(words=("--resume",))
    assert "begins at step 0" in said and "is of another model" in said and rows_computed(said) == 2 * place.trl["batch"], said


def check_keeps_the_part_that_fits(place):
    """Other validation data need values of their own, and no others. Of the training data only rows that steps take are computed."""
    place.write({"method": "dpo"}, **{"data.validation": ["prompts.jsonl"], "training.validation_interval": 4, "checkpoint.interval": 4, "training.steps": 4})
    assert rows_computed(place.run()) == 16 + 24
    said = place.run("training.steps=8", 'data.validation=["chats.jsonl"]', words=("--resume",))
    assert "does not fit the data" in said and "log-probabilities of the validation data" in said and rows_computed(said) == 8 + 24, said
    assert len(place.metrics()) == 8


def check_names_the_method_alone(place):
    """A resumption with another method is one mistake."""
    place.write({"method": "dpo"}, **{"training.steps": 2, "checkpoint.interval": 2})
    place.run()
    place.write({"method": "kto", "desirable_weight": 1.5}, **{"training.steps": 4})
    said = place.run(words=("--resume",), code=2)
    assert "[preference] method" in said and said.count(" now, and ") == 1, said
    place.write({"method": "dpo", "beta": 0.3, "loss_type": ["ipo"]}, **{"training.steps": 4})
    said = place.run(words=("--resume",), code=2)
    assert "[preference] beta" in said and "[preference] loss_type" in said, said


def check_another_dropout_is_the_same_reference(place):
    place.write({"method": "dpo"}, **{"training.steps": 2, "checkpoint.interval": 2})
    place.run()
    place.write({"method": "dpo"}, **{"training.steps": 6, "model.residual_dropout": 0.1})
    assert "has changed since" not in place.run(words=("--resume", "--accept-change", "model.residual_dropout"))
    assert place.metrics()[-1]["step"] == 6


PAIR = {"prompt": "In the beginning", "chosen": " was the word", "rejected": " was nothing"}


def write_lines(place, name, lines):
    with open(place.path(name), "w") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def check_warns_of_pairs_that_teach_nothing(place):
    long = "In the beginning " * 40
    plain = [dict(PAIR, prompt=f"Verse {number}") for number in range(8)]
    kinds = [dict(PAIR, chosen=PAIR["rejected"]), dict(PAIR, prompt=long, chosen=long + "a", rejected=long + "b"), dict(PAIR, rejected=" "), plain[3]]
    place.write({"method": "dpo"}, **{"data.train": ["odd.jsonl"], "training.seq_len": 32, "training.steps": 1})
    write_lines(place, "odd.jsonl", plain + kinds + kinds)
    said = place.run(ranks=2)
    for words in ("2 have nothing to train in their first 32 tokens (the first: odd.jsonl:10)", "2 have equal answers in their first 32 tokens (the first: odd.jsonl:9)",
                  "In 2 of 16 examples an answer is empty or white space (the first: odd.jsonl:11)", "3 of 12 rows repeat an earlier one (odd.jsonl:12 is the same as odd.jsonl:4)"):
        assert said.count(words) == 1, (words, said)
    shutil.rmtree(place.path("out"))
    # answers that differ only behind training.seq_len
    write_lines(place, "odd.jsonl", plain + [dict(PAIR, chosen=" was " + long + "a", rejected=" was " + long + "b")])
    assert "1 have equal answers in their first 32 tokens (the first: odd.jsonl:9)" in place.run()
    shutil.rmtree(place.path("out"))
    for lines in ([kinds[0]], [kinds[1]]):
        write_lines(place, "odd.jsonl", lines)
        said = place.run(code=2)
        assert "nothing is left to train" in said and "the first: odd.jsonl:1" in said, said
    write_lines(place, "odd.jsonl", [{"prompt": f"Verse {number}", "completion": " is good", "label": True} for number in (1, 2, 3, 3)] + [kinds[0]])
    said = place.run("preference.method=kto", "training.global_batch_size=2")
    for words in ("All answers have the label true", "1 of 4 rows repeat an earlier one (odd.jsonl:4 is the same as odd.jsonl:3)", "1 have equal answers (the first: odd.jsonl:5)"):
        assert said.count(words) == 1, (words, said)
    said = place.run("preference.method=kto", words=("--preview", "9"))
    assert "(*)" in said or "tokens" in said, said


def evaluate(place, *options, ranks=1, code=0):
    """(objects of --json, log)"""
    done = subprocess.run([*(mpirun(ranks) if ranks > 1 else []), place.bin + "/zero_evaluate", *options, "--json"], cwd=place.folder, env=environment(),
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == code, (options, done.returncode, done.stdout, done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def expect_validation(found, line, tolerance=2e-5):
    assert abs(found["loss"] - line["validation_loss"]) < tolerance, (found, line)
    shared = [name for name in (*FIGURES[:-1], "kl", "desirable") if "validation_" + name in line]
    assert len(shared) >= 6, line
    for name in shared:
        assert abs(found[name] - line["validation_" + name]) < tolerance * max(1, abs(found[name])), (name, found, line)


def check_evaluates_as_the_run_validates(place):
    """A model, a checkpoint and an adapter, for each method; the reference is the model with which the run began."""
    before = evaluate(place, "model", "texts.jsonl")[0][0]
    assert before["preference"] == "dpo" and "loss" not in before and "rewards/chosen" not in before and before["rows"] == 24, before
    for method, more in (("dpo", {"loss_type": ["sigmoid", "sft"]}), ("orpo", {}), ("kto", {"desirable_weight": 1.5})):
        place.write({"method": method, "beta": 0.2, **more}, **{"data.validation": ["texts.jsonl"], "training.validation_interval": 3, "training.steps": 6, "checkpoint.interval": 6})
        place.run()
        last = place.metrics()[-1]
        for model in ("out", "out/checkpoints", "out/model"):
            found = evaluate(place, model, "texts.jsonl", "--seq-len", "512", "--precision", "fp32")[0][0]
            expect_validation(found, last)
        assert found["preference"] == method and ("rewards/accuracies" in found), found
        if method == "orpo":
            evaluate(place, "out/model", "texts.jsonl", "--reference", "model", code=2)
        else:
            for name in ("logps/chosen", "logps/rejected", "logps/accuracies"):
                assert abs(found["reference"][name] - before[name]) < 1e-4, (found, before)
        assert [found] == evaluate(place, "out/model", "texts.jsonl", "--seq-len", "512", "--precision", "fp32", ranks=3)[0]
        shutil.rmtree(place.path("out"))
    place.write({"method": "dpo"}, **{"data.validation": ["chats.jsonl"], "data.train": ["chats.jsonl"], "training.validation_interval": 6, "training.steps": 6, "lora.r": 4, "optimizer.lr": 0.02, "checkpoint.interval": 6})
    place.run()
    # The reference of a checkpoint of adapters is the base without them.
    for place_of_it in (("out",), ("model", "--adapter", "out"), ("model", "--adapter", "out/adapter"), ("out/checkpoints",)):
        found = evaluate(place, place_of_it[0], "chats.jsonl", *place_of_it[1:], "--precision", "fp32", ranks=2)[0][0]
        expect_validation(found, place.metrics()[-1])
    shutil.copytree(place.path("out", "adapter"), place.path("foreign"))  # of no known run
    foreign = evaluate(place, "model", "chats.jsonl", "prompts.jsonl", "--adapter", "foreign", "--precision", "fp32", "--reference", "model", "--beta", "0.1")[0]
    expect_validation(foreign[0], place.metrics()[-1])
    assert [one["file"] for one in foreign] == ["chats.jsonl", "prompts.jsonl"] and foreign[1]["rows"] == 24, foreign
    same = evaluate(place, "model", "texts.jsonl", "--reference", "model")[0][0]
    assert abs(same["loss"] - math.log(2)) < 1e-6 and same["rewards/margins"] == 0, same
    judged = evaluate(place, "model", "judged.jsonl", "--reference", "model")[0][0]
    assert judged["preference"] == "kto" and abs(judged["loss"] - 0.5) < 1e-6, judged
    shutil.copytree(place.path("model"), place.path("short"))
    with open(place.path("short", "config.json")) as file:
        fields = json.load(file)
    with open(place.path("short", "config.json"), "w") as file:
        json.dump(fields | {"max_position_embeddings": 32}, file)
    for options, words in ((("judged.jsonl", "--preference", "dpo"), "holds judged answers, and dpo compares pairs"), (("texts.jsonl", "--reference", "short", "--seq-len", "64"), "the reference's context is 32"), (("texts.jsonl", "--preference", "orpo", "--reference", "model"), "--reference is for dpo and kto"),
                           (("texts.jsonl", "--reference", "nothere"), "nothere")):
        assert words in evaluate(place, "model", *options, code=2)[1], options


def check_pairs_of_kto_do_not_answer_themselves(place):
    with open(place.path("own.jsonl"), "w") as file:
        for number in range(24):
            pair = {"prompt": f"Verse {number * 7}", "chosen": f" is good {number}", "rejected": f" is bad {number}"}
            file.write(json.dumps(pair) + "\n")
    place.write({"method": "kto", "divergence": True}, **{"data.train": ["own.jsonl"], "training.global_batch_size": 5, "training.steps": 10})
    place.run()
    values = read_safetensors(place.path("out", "reference.safetensors"))
    matched, mismatched = values["training"][2], values["training_mismatched"][2]
    assert len(matched) == len(mismatched) == 48
    assert not set(matched) & set(mismatched), (matched, mismatched)
    with open(place.path("one.jsonl"), "w") as file:
        file.write('{"prompt": "a", "completion": " b", "label": true}\n')
    assert "there is one: name files with more" in place.run('data.train=["one.jsonl"]', "job.output_dir=other", code=2)


def check_refuses_other_examples(place):
    place.write({"method": "dpo"})
    lines = {'{"prompt": "a", "completion": "b"}': "lacks \"chosen\", \"rejected\"", '{"chosen": "ab", "rejected": "ab"}': "with equal answers", '{"chosen": 1, "rejected": "b"}': "must be a text",
             '{"chosen": [{"role": "user", "content": "a"}], "rejected": "b"}': "both be texts", '{"chosen": "xa", "rejected": "yb"}': "have no common beginning",
             '{"prompt": [{"role": "user", "content": "a"}], "chosen": "b", "rejected": "c"}': "make them messages",
             '{"chosen": [{"role": "user", "content": "a"}], "rejected": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}': "is the start of",
             '{"prompt": "a", "chosen": "b", "rejected": "c", "images": ["x"]}': "images", '[1]': "is called .json", "1": "must be an object",
             '{"prompt": "a"': "mend the example, or take it out"}
    for line, words in lines.items():
        with open(place.path("pairs.jsonl"), "w") as file:
            file.write(line + "\n")
        said = place.run('data.train=["pairs.jsonl"]', code=2)
        assert "pairs.jsonl:1" in said and words in said, (line, said)
    for options, words in (((), "no DPO"), (("data.packing=true",), "packs single examples"), (("preference.loss_weights=[1.0, 2.0]",), "has 2 numbers"),
                           (("preference.loss_type=sigmoidal",), "must be a list of"), (("preference.method=orpo", "preference.label_smoothing=0.1"), "is not for preference.method"),
                           (("preference.loss_type=ipo", "preference.label_smoothing=0.1"), "is for the terms sigmoid"),
                           (("preference.loss_type=exo_pair",), "label_smoothing above 0")):
        if not options:
            place.write({})
            said = place.run(code=2)
            assert "[preference]" in said, said
            place.write({"method": "dpo"})
            continue
        assert words in place.run(*options, code=2), options


if __name__ == "__main__":
    args = arguments(__doc__)
    run_checks(args, dict(globals()), lambda check, folder: check(Place(folder, args.bin, args.data)))
