"""zero_plan: predictions for here and for data sheets, refusals, and configurations that train.

usage: test_plan.py BIN TESTS_DATA [-k NAME]
"""
import json
import os
import re
import shutil
import subprocess

from checks import ModelPlace, arguments, environment, mpirun, run_checks

SECTIONS = {"job": {"output_dir": "out"}, "model": {"preset": "llama-tiny"}, "data": {"train": ["tokens.bin"]},
            "training": {"steps": 2, "seq_len": 32, "global_batch_size": 4}, "zero": {"stage": 1}}


class Place(ModelPlace):
    def __init__(self, args, folder):
        super().__init__(folder, args.bin, args.data, SECTIONS)
        self.environment = environment(XDG_CACHE_HOME=self.path("cache"))

    def run(self, program, *words, code=0, **more):
        done = subprocess.run([os.path.join(self.bin, program), *words], cwd=self.folder, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env={**self.environment, **more})
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done

    def plan(self, *words):
        return json.loads(self.run("zero_plan", *words, "--json").stdout)

    def train(self, config, ranks, *words):
        done = subprocess.run([*mpirun(ranks), os.path.join(self.bin, "zero_train"), config, *words], cwd=self.folder, capture_output=True, text=True, env=self.environment)
        assert done.returncode == 0, (done.stdout, done.stderr)
        with open(self.path("out", "metrics.jsonl")) as file:
            return [json.loads(line) for line in file]


def check_layouts_here(place):
    plan = place.plan("config.toml", "--ranks-per-node", "2")
    layouts = plan["layouts"]
    assert len(layouts) == 5 and plan["ranks"] == 2, plan
    assert all(0 < a["seconds"] <= 1.002 * b["seconds"] for a, b in zip(layouts, layouts[1:])), layouts
    assert all(one["fits"] and one["rank_bytes"] > 0 for one in layouts), layouts
    for one in layouts:  # parts add up to the step
        assert abs(sum(one["parts"].values()) - one["seconds"]) < 1e-6 * one["seconds"], one
    assert any("measured here under mpirun" in line for line in plan["sources"]), plan["sources"]
    # Measured numbers are kept: nothing is measured again, and the answer stays.
    again = place.plan("config.toml", "--ranks-per-node", "2", "--no-measure")
    assert [one["seconds"] for one in again["layouts"]] == [one["seconds"] for one in layouts], (again, layouts)
    said = place.run("zero_plan", "config.toml", "--ranks-per-node", "2", "--no-measure").stdout
    assert "measured here by earlier calls" in said and "(measured here under mpirun)" in said and "measuring is off" not in said, said
    # A key that the command line sets stays.
    fixed = place.plan("config.toml", "--ranks-per-node", "2", "--no-measure", "--set", "zero.stage=3")["layouts"]
    assert fixed and all("stage 3" in one["layout"] for one in fixed), fixed
    # A run's folder: what was predicted, and what was measured.
    place.train("config.toml", 2, "--set", "training.steps=6")
    said = place.run("zero_plan", "out", "--no-measure").stdout
    assert re.search(r"step: predicted [0-9.e-]+ s, measured [0-9.e-]+ s \(median of 5\), error [+-][0-9.]+ %", said), said
    memory = re.search(r"tensors of the fullest rank: predicted .*, measured .*, error [+-]([0-9.]+) %", said)
    assert memory and float(memory[1]) < 5, said
    plan = place.plan("out", "--no-measure")
    compared, layout = plan["comparison"], plan["layouts"][0]
    assert compared["timed_steps"] == 5 and compared["seconds"]["predicted"] == layout["seconds"], plan
    assert compared["tracked_bytes"]["predicted"] == layout["tracked_bytes"] and abs(compared["tracked_bytes"]["error"]) < 0.05, plan
    for one in (compared["seconds"], compared["tracked_bytes"]):
        assert one["measured"] > 0 and abs(one["error"] - (one["predicted"] / one["measured"] - 1)) < 1e-9, compared
    assert "comparison" not in again, again
    # Steps of a former start, which may have had other ranks, do not count.
    place.train("config.toml", 2, "--overwrite", "--set", "training.steps=6", "--set", "checkpoint.interval=6")
    place.train("config.toml", 1, "--resume", "--set", "training.steps=10")
    assert place.plan("out", "--no-measure")["comparison"]["timed_steps"] == 3
    nodes = place.plan("out", "--no-measure", "--nodes", "2", "--ranks-per-node", "1")
    assert "comparison" not in nodes and any("this plan is for 2 nodes" in note for note in nodes["notes"]), nodes
    said = place.run("zero_plan", "out", "--no-measure", "--write", "again.toml").stdout
    assert re.search(r"output_dir = .*out-2: the configuration's own holds a run\n", said), said
    os.remove(place.path("again.toml"))
    # A start that finds no step left is no start of these steps.
    place.train("config.toml", 2, "--resume", "--set", "training.steps=10")
    compared = place.plan("out", "--no-measure")["comparison"]
    assert compared["timed_steps"] == 3 and compared["tracked_bytes"]["measured"] > 0, compared
    place.train("config.toml", 1, "--resume", "--set", "training.steps=11")
    assert "the run's last start has 0 timed steps" in place.run("zero_plan", "out", "--no-measure").stdout
    place.train("config.toml", 2, "--overwrite", "--set", "training.steps=6")
    # Figures of another machine or another number of ranks say nothing about this plan.
    for words, why in ((["--machine", "h100-node"], "the run's steps were not timed on h100-node"), (["--gpus", "1", "--no-measure"], "the run had 2 ranks, and this plan has 1")):
        plan = place.plan("out", *words)
        assert "comparison" not in plan and any("not compared with the run: " + why in note for note in plan["notes"]), plan
    place.train("config.toml", 2, "--overwrite")
    said = place.run("zero_plan", "out", "--no-measure").stdout
    assert "note: not compared with the run: the run has 1 timed step without a validation, and a comparison needs two" in said and "stage 1" in said, said
    os.remove(place.path("out", "metrics.jsonl"))
    assert "the run has 0 timed steps" in place.run("zero_plan", "out", "--no-measure").stdout
    # A damaged cache is measured anew.
    cache = [name for name in os.listdir(place.path("cache", "zero"))]
    assert len(cache) == 1, cache
    with open(place.path("cache", "zero", cache[0]), "w") as file:
        file.write("{")
    place.plan("config.toml", "--ranks-per-node", "2", "--only-given")
    with open(place.path("cache", "zero", cache[0])) as file:
        assert json.load(file)["seconds"], "the cache was not written again"


def check_memory_is_the_estimate(place):
    plan = place.plan("config.toml", "--only-given", "--ranks-per-node", "1", "--no-measure")["layouts"][0]
    measured = max(line["peak_bytes"] for line in place.train("config.toml", 1))
    assert abs(plan["tracked_bytes"] / measured - 1) < 0.02, (plan["tracked_bytes"], measured)


def check_written_configuration_trains(place):
    said = place.run("zero_plan", "config.toml", "--ranks-per-node", "2", "--no-measure", "--write", "planned.toml", "--largest-batch").stdout
    assert "largest local_batch_size" in said and "scripts/train planned.toml -np 2" in said, said
    first = place.plan("config.toml", "--ranks-per-node", "2", "--no-measure", "--best", "1", "--largest-batch")["layouts"][0]
    assert first["largest_local_batch_size"] >= 1, first
    assert len(place.train("planned.toml", 2)) == 2
    assert "exists" in place.run("zero_plan", "config.toml", "--write", "planned.toml", code=2).stderr
    # What the run would refuse is not written.
    words = ["zero_plan", "config.toml", "--ranks-per-node", "2", "--no-measure", "--write", "other.toml"]
    assert "does not exist" in place.run(*words, "--set", 'data.train=["none.bin"]', code=2).stderr
    assert "must not exceed the run's 2 steps" in place.run(*words, "--set", "lr_scheduler.warmup_steps=3", code=2).stderr
    assert not os.path.exists(place.path("other.toml"))


def check_given_layout(place):
    """A configuration's own layout has a row, and no setting of the file keeps layouts out of the search."""
    with open(place.path("cpu.toml"), "w") as file:
        file.write('[job]\noutput_dir = "out"\n[model]\npreset = "llama-tiny"\n[data]\ntrain = ["tokens.bin"]\n[training]\nsteps = 2\nseq_len = 32\nglobal_batch_size = 8\n'
                   '[zero]\nstage = 3\n[offload]\noptimizer = "cpu"\nparameters = "cpu"\n')
    words = ["--ranks-per-node", "2", "--no-measure"]
    said = place.run("zero_plan", "cpu.toml", *words).stdout
    assert "stage 3, states on cpu, weights on cpu (as given)" in said and "changes nothing on CPUs" in said, said
    plan = place.plan("cpu.toml", *words, "--best", "100")
    names = [one["layout"] for one in plan["layouts"]]
    assert plan["given"]["layout"] == "stage 3, states on cpu, weights on cpu" and any("states" not in name for name in names) and any("stage 1" in name for name in names), names
    plan = place.plan("cpu.toml", *words, "--set", "offload.parameters=none", "--set", "offload.optimizer=none", "--set", "training.local_batch_size=1", "--set", "zero.stage=3",
                      "--set", "activation_checkpoint.mode=none", "--set", "activation_checkpoint.keep=off", "--set", "parallel.tensor=1")
    assert plan["given"]["layout"] in [one["layout"] for one in plan["layouts"]], plan
    said = place.run("zero_plan", "cpu.toml", "--ranks-per-node", "3", "--no-measure", "--set", "training.global_batch_size=12", "--set", "training.local_batch_size=4").stdout
    assert "(as given)" in said, said
    assert "given" not in place.plan("llama-tiny", *words)
    for more, stage in (([], "3"), (["--set", "zero.stage=2", "--set", "offload.optimizer=none", "--set", "offload.parameters=none"], "2")):
        plan = place.plan("cpu.toml", *words, *more, "--only-given")["layouts"][0]
        assert plan["local_batch_size"] == 1 and plan["accumulation"] == 4 and plan["settings"]["zero.stage"] == stage and "offload.optimizer" in plan["settings"], plan
    assert place.plan("cpu.toml", *words)["given"]["settings"]["offload.optimizer"] == '"cpu"'
    assert "2 ranks of 1 thread, 300.0 MiB for each rank\n" in place.run("zero_plan", "cpu.toml", *words, "--memory", "300MiB").stdout
    # Of equally fast layouts the smaller comes first.
    layouts = place.plan("cpu.toml", *words, "--best", "100")["layouts"]
    for a, b in zip(layouts, layouts[1:]):
        assert a["seconds"] < b["seconds"] / 1.0011 or a["rank_bytes"] <= b["rank_bytes"] or a["seconds"] < b["seconds"], (a, b)


def check_data_sheets(place):
    small = place.plan("tinyllama-1.1b", "--machine", "h100-node")["layouts"]
    assert small[0]["sent_between_bytes"] == 0, small[0]
    two = place.plan("tinyllama-1.1b", "--machine", "h100-node", "--nodes", "2")["layouts"]
    assert two[0]["tokens_per_second"] > small[0]["tokens_per_second"], (two[0], small[0])
    faster = place.plan("tinyllama-1.1b", "--machine", "b200-node")["layouts"]
    assert faster[0]["tokens_per_second"] > 1.3 * small[0]["tokens_per_second"], (faster[0], small[0])
    # A slow link makes between-node bytes dear.
    slow = place.plan("tinyllama-1.1b", "--machine", "h100-node", "--nodes", "2", "--link", "1Gbit")["layouts"]
    assert slow[0]["seconds"] > 2 * two[0]["seconds"], (slow[0], two[0])
    # Six GPUs do not divide four heads of keys and values, so no layout has a tensor axis of three.
    six = place.plan("tinyllama-1.1b", "--machine", "h100-node", "--gpus", "6", "--global-batch", "48")["layouts"]
    assert six and all("tensor 3" not in one["layout"] for one in six), six
    # On one GPU a stage that is given stays.
    one = place.plan("llama-tiny", "--machine", "h100-node", "--gpus", "1", "--set", "zero.stage=2")["layouts"]
    assert one and all("stage 2" in each["layout"] for each in one), one
    # Less memory leaves fewer layouts: a plan never names one that does not fit.
    tight = place.plan("tinyllama-1.1b", "--machine", "h100-node", "--memory", "8GiB")["layouts"]
    assert all(one["rank_bytes"] <= 7 * 2**30 for one in tight), tight


def check_refusals(place):
    cases = [(["llama-15m", "--machine", "h900"], "h100-node"), (["nothing-here"], "is neither a path here nor a preset"), ([], "name a model or a configuration"),
             (["config.toml", "--seq-len", "64"], "is for a model"), (["llama-15m", "--nodes", "2", "--link", "100"], "is no rate"), (["llama-15m", "--link", "10GB"], "give --nodes too"),
             (["llama-15m", "--machine", "h100-node", "--memory", "80"], "unit"), (["tinyllama-1.1b", "--memory", "600MiB", "--ranks-per-node", "1", "--no-measure"], "no layout fits")]
    for words, said in cases:
        error = place.run("zero_plan", *words, code=2).stderr
        assert said in error, (words, error)
        assert error.count("error:") == 1, error
    error = place.run("zero_plan", "llama-tiny", "--machine", "h100-node", "--nodes", "3", "--global-batch", "64", "--set", "parallel.context=1", "--set", "parallel.tensor=1", code=2).stderr
    assert "must be a multiple" in error, error  # the batch does not divide; memory is no reason
    # The search may choose micro-batches of one row.
    error = place.run("zero_plan", "config.toml", "--machine", "h100-node", "--nodes", "4", "--set", "training.global_batch_size=20", "--set", "training.local_batch_size=4", code=2).stderr
    assert "4 x 32 = 128" in error, error
    error = place.run("zero_plan", "config.toml", "--machine", "h100-node", "--nodes", "4", "--set", "training.global_batch_size=20", code=2).stderr
    assert "1 x 32 = 32" in error, error
    for words, said in (["llama-tiny", "--global-batch", "3"], "error: --global-batch 3: must be a multiple"), (["config.toml", "--only-given"], "; legal here: --set "):
        error = place.run("zero_plan", *words, "--machine", "h100-node", code=2).stderr
        assert said in error, (words, error)
    error = place.run("zero_plan", "config.toml", "--ranks-per-node", "4", "--no-measure", "--only-given", "--set", "parallel.pipeline=2", "--set", "zero.stage=3", code=2).stderr
    assert "this needs parallel.regather = true; legal here: " in error, error
    for name in ("empty", "config"):
        os.makedirs(place.path(name), exist_ok=True)
    shutil.copy(os.path.join(place.data, "tiny", "model", "config.json"), place.path("config"))
    for words, said in [(["llama-15"], "llama-15: is neither a path here nor a preset; the nearest is llama-15m; known are llama-tiny, llama-15m"), (["empty"], "the output directory of a run"),
                        (["llama-tiny", "--gpus", "0"], "error: --gpus: Value 0"), (["llama-tiny", "--ranks-per-node=0"], "error: --ranks-per-node: Value 0"),
                        (["llama-tiny", "--data", "corpus.txt", "--write", "never.toml"], "--data corpus.txt: is text, and llama-tiny has no tokenizer: give --tokenizer"),
                        (["config/config.json", "--data", "corpus.txt", "--write", "never.toml"], "corpus.txt: is text, and config/config.json has no tokenizer: give --tokenizer"),
                        (["llama-tiny", "--data", "none.bin", "--no-measure", "--write", "never.toml"], "error: --data none.bin: is no file here")]:
        error = place.run("zero_plan", *words, code=2).stderr
        assert said in error, (words, error)
    assert "--data" in place.run("zero_plan", "llama-tiny", "--no-measure", "--write", "never.toml", code=2).stderr
    words = ["tinyllama-1.1b", "--data", "tokens.bin", "--only-given", "--ranks-per-node", "1", "--memory", "600MiB", "--no-measure"]
    assert "does NOT fit" in place.run("zero_plan", *words).stdout
    assert "does not fit" in place.run("zero_plan", *words, "--write", "never.toml", code=2).stderr and not os.path.exists(place.path("never.toml"))


def check_values_of_a_planned_model(place):
    """A model that is trained already gets zero_config's rate, length and warm-up, and a preset those of pretraining."""
    model = os.path.join(place.data, "preferences", "model")
    base = ["--ranks-per-node", "2", "--no-measure"]
    for words, values, lines in (([model, "--data", os.path.join(place.data, "smollm2", "gsm8k.jsonl")], "lr 2e-05, 2 epochs, warm-up of 3 %", ("lr = 2e-05", "warmup_ratio = 0.03", "weight_decay = 0.0")),
                                 ([model, "--data", os.path.join(place.data, "smollm2", "gsm8k.jsonl"), "--set", "lora.r=8"], "lr 0.0002, 2 epochs, warm-up of 3 %", ("lr = 2e-04",)),
                                 ([model, "--data", os.path.join(place.data, "preferences", "texts.jsonl")], "dpo, lr 1e-06, 2 epochs, warm-up of 3 %", ('method = "dpo"',)),
                                 (["llama-tiny", "--data", "tokens.bin"], "lr 0.0006, 1000 steps, warm-up of 33 steps", ("warmup_steps = 33",)),
                                 (["llama-tiny", "--data", "tokens.bin", "--set", "optimizer.lr=0.001"], "lr 0.001, 1000 steps, warm-up of 33 steps", ("lr = 0.001",))):
        said = place.run("zero_plan", *words, *base, "--write", "planned.toml").stdout
        assert f"wrote planned.toml with the first layout: {values}\ndata: " in said and "\nstart it:\n  " in said, (words, said)
        with open(place.path("planned.toml")) as file:
            text = file.read()
        assert all(line in text.splitlines() for line in lines), (words, lines, text)
        os.remove(place.path("planned.toml"))
    said = place.run("zero_plan", "llama-tiny", "--data", "tokens.bin", *base, "--only-given", "--write", "planned.toml").stdout
    assert "wrote planned.toml: lr" in said, said
    # The output directory of a GGUF file has no such ending.
    place.run("zero_export", model, "small.gguf", "--gguf", "F16")
    said = place.run("zero_plan", "small.gguf", "--data", os.path.join(place.data, "smollm2", "gsm8k.jsonl"), *base, "--write", "gguf.toml").stdout
    with open(place.path("gguf.toml")) as file:
        assert 'output_dir = "outputs/small"' in file.read()


def check_a_preset_of_a_file(place):
    shutil.copy(place.path("model", "config.json"), place.path("shape.json"))
    place.run("zero_config", "--model", "shape.json", "--data", "tokens.bin", "--machine", "here", "--ranks-per-node", "2", "--no-measure", "--steps", "2",
              "--seq-len", "16", "--output-dir", "out", "--out", "shape.toml")
    with open(place.path("shape.toml")) as file:
        assert 'preset = "shape.json"' in file.read()
    assert len(place.train("shape.toml", 2)) == 2


def check_the_base_is_quantized_last(place):
    """Quantizing changes the result, so it comes after every layout that does not, and at once where it is asked for."""
    words = ["--set", "model.path=model", "--set", "lora.r=2", "--ranks-per-node", "2", "--no-measure", "--best", "100"]
    for own in ("none", "nf4"):
        with open(place.path("lora.toml"), "w") as file:
            file.write(f'[job]\noutput_dir = "out"\n[data]\ntrain = ["tokens.bin"]\n[training]\nsteps = 2\nseq_len = 32\nglobal_batch_size = 4\n[lora]\nquantization = "{own}"\n')
        layouts = [layout["layout"] for layout in place.plan("lora.toml", *words)["layouts"]]
        keeps = ["nf4 base" in layout if own == "nf4" else "base" not in layout for layout in layouts]
        assert keeps[0] and keeps == sorted(keeps, reverse=True) and not all(keeps), layouts


def run_in_places(names, doc):
    """Runs the checks of `names` (a file's globals()), each in a place of its own."""
    args = arguments(doc)
    run_checks(args, names, lambda check, folder: check(Place(args, folder)))


if __name__ == "__main__":
    run_in_places(globals(), __doc__)
