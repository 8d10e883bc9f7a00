"""zero_plan and zero_config: predictions for here and for data sheets, refusals, and configurations that train.

usage: test_plan.py BIN TESTS_DATA [-k NAME]
"""
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time

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
    plan = place.plan("cpu.toml", *words, "--only-given")["layouts"][0]
    assert plan["local_batch_size"] == 1 and plan["accumulation"] == 4 and plan["settings"]["zero.stage"] == "3", plan
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
    os.makedirs(place.path("empty"), exist_ok=True)
    for words, said in [(["llama-15"], "llama-15: is neither a path here nor a preset; the nearest is llama-15m; known are llama-tiny, llama-15m"), (["empty"], "the output directory of a run"),
                        (["llama-tiny", "--gpus", "0"], "error: --gpus: Value 0"), (["llama-tiny", "--ranks-per-node=0"], "error: --ranks-per-node: Value 0"),
                        (["llama-tiny", "--data", "corpus.txt", "--write", "never.toml"], "--data corpus.txt: is text, and a preset has no tokenizer: give --tokenizer")]:
        error = place.run("zero_plan", *words, code=2).stderr
        assert said in error, (words, error)
    assert "--data" in place.run("zero_plan", "llama-tiny", "--no-measure", "--write", "never.toml", code=2).stderr
    words = ["tinyllama-1.1b", "--data", "tokens.bin", "--only-given", "--ranks-per-node", "1", "--memory", "600MiB", "--no-measure"]
    assert "does NOT fit" in place.run("zero_plan", *words).stdout
    assert "does not fit" in place.run("zero_plan", *words, "--write", "never.toml", code=2).stderr and not os.path.exists(place.path("never.toml"))


def check_config_without_a_terminal(place):
    error = place.run("zero_config", "--data", "tokens.bin", "--out", "new.toml", code=2).stderr
    assert "--model (and --tokenizer for a preset and texts)" in error and "--data" not in error.split("give ")[1], error
    with open(place.path("corpus.txt"), "w") as file:
        file.write("words " * 40)
    error = place.run("zero_config", "--model", "llama-tiny", "--data", "corpus.txt", "--out", "new.toml", code=2).stderr
    assert "give --tokenizer on the command line" in error, error
    assert "the nearest is llama-110m" in place.run("zero_config", "--model", "llama-110", "--data", "tokens.bin", "--out", "new.toml", code=2).stderr
    assert not os.path.exists(place.path("new.toml"))
    for words, said in [(["--model", "no/model", "--data", "tokens.bin", "--out", "new.toml"], "zero_fetch"), (["--model", "llama-tiny", "--data", "none.bin", "--out", "new.toml"], "is no file"),
                        (["--model", "llama-tiny", "--data", "tokens.bin", "--out", "config.toml"], "exists")]:
        error = place.run("zero_config", *words, code=2).stderr
        assert said in error, (words, error)
    said = place.run("zero_config", "--model", "llama-tiny", "--data", "tokens.bin", "--machine", "h100-node", "--nodes", "4", "--slurm", "--out", "gpu.toml").stdout
    # The job's folder is not the project's, so the command names the program: of GPUs that of their own build.
    assert re.search(r"ZERO_TRAIN=/\S*/build/cuda/bin/zero_train sbatch -N 4 --ntasks-per-node=8 --gpus-per-node=8 \S*/examples/slurm.sbatch gpu.toml", said), said
    with open(place.path("hosts"), "w") as file:
        file.write("# nodes\nn1 slots=8\nn2 slots=8\nn2\n")
    words = ["--model", "llama-tiny", "--data", "tokens.bin", "--machine", "mi300x-node", "--out", "hosts.toml", "--hostfile"]
    assert "hosts: names 2 nodes, and --nodes is 3" in place.run("zero_config", *words, "hosts", "--nodes", "3", code=2).stderr
    assert "is no file that can be read" in place.run("zero_config", *words, "nothere", code=2).stderr
    said = place.run("zero_config", *words, "hosts").stdout  # the file has the number of nodes
    assert "2 nodes" in said and "scripts/train hosts.toml --hostfile hosts --map-by ppr:8:node -np 16\n" in said and "note: zero has no backend for this GPU" in said, said


def check_what_is_written_can_be_trained(place):
    """The data decide: a tokenizer that fits, pairs for preferences, packed conversations. The rest is refused before planning."""
    model, trl = os.path.join(place.data, "preferences", "model"), os.path.join(place.data, "preferences")
    base = ["--machine", "here", "--ranks-per-node", "1", "--no-measure", "--output-dir", "out"]
    for file, words, lacks in (("texts.jsonl", 'method = "dpo"', "packing"), ("judged.jsonl", 'method = "kto"', "packing"), ("gsm8k.jsonl", "packing = true", "[preference]")):
        data = os.path.join(trl if file != "gsm8k.jsonl" else os.path.join(place.data, "smollm2"), file)
        extra = ["--set", "data.chat_template=chatml"] if file == "gsm8k.jsonl" else []
        place.run("zero_config", "--model", model, "--data", data, *base, *extra, "--out", file + ".toml")
        with open(place.path(file + ".toml")) as written:
            text = written.read()
        assert words in text and lacks not in text and "warmup_ratio = 0.03" in text, text
    both = ",".join(os.path.join(place.data, *names) for names in (("smollm2", "gsm8k.jsonl"), ("preferences", "texts.jsonl")))
    error = place.run("zero_config", "--model", model, "--data", both, *base, "--set", "data.chat_template=chatml", "--out", "both.toml", code=2).stderr
    assert "texts.jsonl:1" in error and "pair" in error, error
    words = os.path.join(place.data, "..", "..", "examples", "data", "kjv.txt")
    tokenizer = os.path.join(place.data, "tinyllama-chat", "tokenizer.model")
    # A preset with fewer ids than the tokenizer gets as many, unless the user says otherwise.
    said = place.run("zero_config", "--model", "llama-tiny", "--data", words, "--tokenizer", tokenizer, *base, "--out", "ids.toml").stdout
    with open(place.path("ids.toml")) as written:
        text = written.read()
    assert "vocab_size = 32000" in text and re.search(r"data: 10\d\d rows of 1024 tokens: 1000 steps of 32 rows, 30 epochs", said), (said, text)
    place.run("zero_config", "--model", "llama-tiny", "--data", "tokens.bin", *base, "--set", "model.vocab_size=640", "--set", "model.rope_theta=5e4", "--out", "fields.toml")
    with open(place.path("fields.toml")) as written:
        text = written.read()
    assert "vocab_size = 640" in text and "rope_theta = 50000.0" in text, text
    assert len(place.train("fields.toml", 1, "--set", "training.steps=2", "--set", "lr_scheduler.warmup_steps=0", "--set", "training.seq_len=32", "--set", "training.global_batch_size=1")) == 2
    for more, said in [(["--model", "llama-tiny", "--data", words, "--tokenizer", tokenizer, "--set", "model.vocab_size=512"], "vocab_size is 512"),
                       (["--model", "llama-15m", "--data", words], "give --tokenizer"),
                       (["--model", "llama-15m", "--data", words, "--tokenizer", "nothing"], "does not exist"),
                       (["--model", "llama-tiny", "--data", "tokens.bin", "--seq-len", "100000"], "--seq-len 100000: the model's context is"),
                       (["--model", "llama-tiny", "--data", "tokens.bin", "--out", "no/x.toml"], "--out no/x.toml: the folder no is not there")]:
        out = [] if "--out" in more else ["--out", "x.toml"]
        error = place.run("zero_config", *more, *base, *out, code=2).stderr
        assert said in error, (more, error)
    assert "--write no/x.toml: the folder no" in place.run("zero_plan", "config.toml", "--no-measure", "--write", "no/x.toml", code=2).stderr
    assert "nothing was measured (--no-measure)" in place.run("zero_plan", "llama-tiny", "--no-measure", "--ranks-per-node", "1").stdout


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


def check_other_machines(place):
    """Folders for output are looked at where the run is. A command to look first is printed for this machine."""
    words = ["--model", "llama-tiny", "--data", "tokens.bin", "--no-measure", "--set", "training.seq_len=32", "--set", "offload.nvme_dir=/not/here/x", "--set", "offload.optimizer=nvme"]
    said = place.run("zero_config", *words, "--machine", "h100-node", "--out", "gpu.toml").stdout
    assert "--dry-run" not in said, said
    assert "only the last folder of the path is made" in place.run("zero_config", *words, "--machine", "here", "--out", "here.toml", code=2).stderr
    said = place.run("zero_config", *words[:-4], "--ranks-per-node", "2", "--machine", "here", "--set", "parallel.context=2", "--out", "two.toml").stdout
    command = said[said.index("or look at it first:\n") :].splitlines()[1].split()
    assert command[1:] == ["two.toml", "--dry-run", "--ranks", "2"], command
    assert "rows of 32 tokens" in subprocess.run(command, cwd=place.folder, capture_output=True, text=True, env=place.environment, check=True).stdout
    # The examples of a preview depend on no layout.
    tokenizer, rows = (os.path.join(place.data, *names) for names in (("preferences", "model"), ("smollm2", "gsm8k.jsonl")))
    preview = ["--preview", "1", "--set", f"data.tokenizer={tokenizer}", "--set", f'data.train=["{rows}"]', "--set", "model.vocab_size=400", "--set", "data.chat_template=chatml"]
    shown = place.run("zero_train", "two.toml", *preview, "--set", "parallel.context=1").stdout
    assert shown
    for layout in ("parallel.context=2", "parallel.pipeline=8", "zero.shard_degree=4"):
        assert place.run("zero_train", "two.toml", *preview, "--set", layout).stdout == shown, layout
    said = place.run("zero_plan", "llama-tiny", "--nodes", "2", "--ranks-per-node", "1", "--link", "10Gbps", "--no-measure").stdout
    assert "10 Gbit/s" in said or "1.25 GB/s" in said, said


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


def check_translations(place):
    with open(place.path("ds.json"), "w") as file:
        json.dump({"train_batch_size": 8, "zero_optimization": {"stage": 2, "overlap_comm": True}, "optimizer": {"type": "AdamW", "params": {"lr": 3e-4}}, "odd": 1}, file)
    with open(place.path("a.yml"), "w") as file:
        file.write("base_model: org/unknown\nadapter: qlora\nlora_r: 4\nsequence_len: 32\nlearning_rate: 0.001\nmax_steps: 2\nmicro_batch_size: 1\ngradient_accumulation_steps: 3\nliger_rope: true\nliger_glu_activation: true\nflash_attention: true\ndatasets:\n  - path: org/set\n    type: alpaca\n")
    words = ["--data", "tokens.bin", "--machine", "here", "--ranks-per-node", "2", "--no-measure", "--output-dir", "out"]
    said = place.run("zero_config", "--from", "ds.json", "--model", "llama-tiny", *words, "--steps", "2", "--seq-len", "32", "--out", "ds.toml").stdout
    assert "zero.stage=2" in said and "overlap_comm: gathers" in said and "odd: nothing here" in said, said
    with open(place.path("ds.toml")) as file:
        text = file.read()
    assert "\nstage = 2\n" in text and "lr = 3e-04" in text and "global_batch_size = 8" in text, text
    assert len(place.train("ds.toml", 2)) == 2
    # A file of DeepSpeed asks for no adapters.
    place.run("zero_config", "--from", "ds.json", "--model", "model", *words, "--steps", "2", "--seq-len", "32", "--out", "model.toml")
    with open(place.path("model.toml")) as file:
        assert "[lora]" not in file.read()
    # Flags go before the file, and a warm-up in steps before a translated ratio.
    with open(place.path("warm.yml"), "w") as file:
        file.write("base_model: m\nnum_epochs: 1\n")
    place.run("zero_config", "--from", "warm.yml", "--model", "llama-tiny", *words, "--set", "lr_scheduler.warmup_steps=2", "--global-batch", "4", "--seq-len", "32", "--out", "my warm.toml")
    with open(place.path("my warm.toml")) as file:
        text = file.read()
    assert "warmup_steps = 2" in text and "warmup_ratio" not in text and "scripts/train 'my warm.toml'" in text, text
    with open(place.path("long.yml"), "w") as file:
        file.write("base_model: m\nmax_steps: 1000\nwarmup_steps: 100\n")
    said = place.run("zero_config", "--from", "long.yml", "--model", "llama-tiny", *words, "--steps", "20", "--global-batch", "4", "--out", "long.toml").stdout
    assert "is longer than the run's 20 steps; a thirtieth of them counts" in said, said
    said = place.run("zero_config", "--from", "ds.json", "--model", "llama-tiny", *words, "--steps", "2", "--seq-len", "32", "--global-batch", "4", "--out", "own.toml").stdout
    assert "train_batch_size: the command line gives another" in said, said
    with open(place.path("own.toml")) as file:
        assert "global_batch_size = 4" in file.read()
    place.run("zero_config", "--from", "a.yml", "--model", "model", "--method", "full", *words, "--global-batch", "6", "--out", "full.toml")
    with open(place.path("full.toml")) as file:
        assert "[lora]" not in file.read()
    said = place.run("zero_config", "--from", "a.yml", "--model", "model", *words, "--global-batch", "4", "--out", "a.toml").stdout
    assert "base_model: org/unknown: the command line names another" in said and "flash_attention" in said and "datasets: paths are taken; the keys of an example" in said, said
    assert "  liger_rope, liger_glu_activation, flash_attention: an implementation" in said and "global batch:" not in said, said
    said = place.run("zero_config", "--from", "a.yml", "--model", "model", *words, "--out", "batch.toml").stdout
    assert "global batch: 3 rows a rank x 2 = 6 rows\n" in said, said
    with open(place.path("batch.toml")) as file:
        assert "global_batch_size = 6" in file.read()
    error = place.run("zero_config", "--from", "a.yml", *words, "--out", "never.toml", code=2)
    assert "base_model: --model org/unknown: is neither a path here" in error.stdout and "zero_fetch org/unknown" in error.stdout and "--model" in error.stderr, error
    with open(place.path("a.toml")) as file:
        text = file.read()
    assert "quantization = \"nf4\"" in text and "\nr = 4\n" in text and "steps = 2" in text, text
    for name, bad, error in [("bad.yml", "a: [", "is no YAML"), ("bad.json", "{", "bad.json"), ("other.yml", "a: 1\n", "neither base_model"), ("own.toml", "[job]\n", "own.toml: TOML is what zero_train reads"),
                             ("grpo.yml", "base_model: m\nrl: grpo\n", "grpo.yml: rl: grpo: zero has no reward models")]:
        with open(place.path(name), "w") as file:
            file.write(bad)
        assert error in place.run("zero_config", "--from", name, *words, "--out", "never.toml", code=2).stderr
    assert not os.path.exists(place.path("never.toml"))


def check_shares_of_a_run(place):
    """The data are counted, so shares and times per epoch become steps, and a warm-up that is longer than the run is shortened."""
    model, data = os.path.join(place.data, "preferences", "model"), os.path.join(place.data, "smollm2", "gsm8k.jsonl")
    words = ["--model", model, "--data", data, "--set", "data.chat_template=chatml", "--machine", "here", "--ranks-per-node", "2", "--no-measure"]
    def translated(name, text, *more, code=0, keep=words):
        with open(place.path(name), "w") as file:
            file.write(text)
        return place.run("zero_config", "--from", name, *keep, *more, "--out", name + ".toml", code=code)
    base = "base_model: org/name\nadapter: lora\noutput_dir: out\nmicro_batch_size: 1\nlearning_rate: 0.0002\nsequence_len: 256\n"
    said = translated("epochs.yml", base + "num_epochs: 2\nval_set_size: 0.2\nevals_per_epoch: 2\nsaves_per_epoch: 1\nwarmup_steps: 1000\n").stdout
    # 16 examples: 13 to train on, 13 steps of 2 rows in two epochs.
    for line in ("  output_dir: as --output-dir out", "data: 13 rows of at most 256 tokens, 188 on average: 13 steps of 2 rows, 2 epochs", "evals_per_epoch: training.validation_interval=4, of 13 steps",
                 "saves_per_epoch: checkpoint.interval=7, of 13 steps", "epochs.yml: warmup_steps (lr_scheduler.warmup_steps=1000): is longer than the run's 13 steps; a thirtieth of them counts"):
        assert line in said.splitlines(), (line, said)
    lines = place.train("epochs.yml.toml", 2)
    assert len(lines) == 13 and [line["step"] for line in lines if "validation_loss" in line] == [4, 8, 12, 13], lines
    # Shares are of the run's length, also where the command line gives it.
    for flags in (["--steps", "5"], ["--set", "training.steps=5"]):
        said = translated("share" + flags[-1][-1] + flags[0].strip("-") + ".yml", base + "max_steps: 1000\nsave_steps: 0.4\nwarmup_steps: 900\n", *flags).stdout
        assert "save_steps: checkpoint.interval=2, of 5 steps" in said and "warmup_steps: is longer than the run's 5 steps" in said, said
    said = translated("twice.yml", base + "num_epochs: 1\nsaves_per_epoch: 3\n", "--set", "training.epochs=2").stdout
    assert "saves_per_epoch: checkpoint.interval=3, of 16 steps" in said, said
    said = translated("self.yml", base + "num_epochs: 1\ndeepspeed: self.yml\n").stdout
    assert "deepspeed: self.yml: is no configuration of DeepSpeed (JSON)" in said, said
    # Without num_epochs, max_steps and the data give the epochs.
    said = translated("steps.yml", base + "max_steps: 13\nval_set_size: 0.2\nevals_per_epoch: 2\n").stdout
    assert "evals_per_epoch: training.validation_interval=4, of 13 steps" in said, said
    # An interval of the command line is enough for the file's share of validation rows.
    said = translated("interval.yml", base + "num_epochs: 1\nval_set_size: 0.2\n", "--set", "training.validation_interval=3").stdout
    assert "data.validation_fraction=0.2" in said and "val_set_size" not in said, said
    # Data that are too large to be counted leave no number of steps.
    with open(data) as file, open(place.path("large.jsonl"), "w") as out:
        lines = file.read()
        for _ in range((17 << 20) // len(lines) + 1):
            out.write(lines)
    said = translated("large.yml", base + "num_epochs: 1\nval_set_size: 0.2\nevals_per_epoch: 2\nsaves_per_epoch: 1\n", "--data", place.path("large.jsonl"), keep=words[:2] + words[4:]).stdout
    for key, own in (("evals_per_epoch", "training.validation_interval"), ("saves_per_epoch", "checkpoint.interval")):
        assert f"{key}: the data are too large to be counted here, so the run's steps are not known: give --set {own}, in steps" in said, said
    assert "val_set_size: a validation needs an interval" in said and "data: " not in said, said
    os.remove(place.path("large.jsonl"))
    # Errors name the file's key, or the flag.
    assert "error: long.yml: sequence_len (training.seq_len=4096): must be at most the model's context" in translated("long.yml", base.replace("256", "4096"), code=2).stderr
    assert "error: adapter.yml: adapter is ia3: here it may be lora or qlora; leave it out to train all weights" in translated("adapter.yml", base.replace("lora\n", "ia3\n", 1), code=2).stderr
    for slip, key in (("learning_rte", "learning_rate"), ("seqence_len", "sequence_len"), ("lora_aplha", "lora_alpha")):
        said = translated("typo.yml", base + slip + ": 1\n", code=2).stderr
        assert f"error: typo.yml: {slip}: is unknown here; the nearest key of axolotl is {key}: correct it, or leave it out" in said, said
    said = translated("typo.yml", base + "adam_beta3: 0.9\nflash_atention: true\n").stdout  # a key of axolotl, and one without an effect
    assert "CAME has three betas" in said and "the nearest key of axolotl is flash_attention" in said, said
    os.makedirs(place.path("deepspeed_configs"), exist_ok=True)
    with open(place.path("deepspeed_configs", "mine.json"), "w") as file:
        json.dump({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}, "train_batch_size": "auto"}, file)
    said = translated("ds.yml", base + "deepspeed: deepspeed_configs/mine.json\n").stdout
    assert "zero.stage=2" in said and 'offload.optimizer="cpu"' in said, said
    # "auto" is what zero_config chose.
    said = translated("auto.json", json.dumps({"train_batch_size": "auto", "zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}, "optimizer": {"type": "AdamW", "params": {"lr": "auto", "weight_decay": "auto"}},
                                               "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_num_steps": "auto", "warmup_max_lr": "auto"}}}), "--output-dir", "out").stdout
    for line in ("  optimizer.params.lr: optimizer.lr=2e-05", "  optimizer.params.weight_decay: optimizer.weight_decay=0.0", "  scheduler.params.warmup_num_steps: lr_scheduler.warmup_ratio=0.03",
                 "  zero_optimization.offload_param.device: weights are offloaded at stage 3 alone, there too"):
        assert line in said.splitlines(), (line, said)


def check_few_rows(place):
    """What the user leaves open fits the data; what the run would refuse is refused."""
    base = ["--model", "llama-tiny", "--machine", "here", "--ranks-per-node", "2", "--no-measure", "--output-dir", "out"]
    with open(place.path("few.bin"), "wb") as file:
        file.write(bytes(i % 200 if i % 2 == 0 else 0 for i in range(2 * 700)))
    said = place.run("zero_config", *base, "--data", "few.bin", "--out", "few.toml").stdout
    assert "the data have no row of 1024 tokens; training.seq_len is 512" in said and "data: 1 row of 512 tokens: 1000 steps of 2 rows" in said, said
    assert "note: each row is seen 2000 times, which a model may learn by heart" in said, said
    error = place.run("zero_config", *base, "--data", "few.bin", "--seq-len", "1024", "--out", "never.toml", code=2).stderr
    assert "few.bin has 700 tokens, too few for one row" in error, error
    said = place.run("zero_config", *base, "--data", "few.bin", "--seq-len", "16", "--steps", "4", "--out", "short.toml").stdout
    assert "data: 43 rows of 16 tokens: 4 steps of 4 rows, 0.37 epochs" in said, said
    assert "note: 4 steps change a model little" in said and "each row is seen" not in said, said
    assert len(place.train("short.toml", 2)) == 4
    # Ids are counted without a folder for temporary files.
    place.run("zero_config", *base, "--data", "few.bin", "--seq-len", "16", "--steps", "4", "--out", "ids.toml", TMPDIR=place.path("nowhere"))
    # Rows of preferences end with the longest pair, so that the plan is of such rows.
    model, pairs = (os.path.join(place.data, "preferences", name) for name in ("model", "texts.jsonl"))
    said = place.run("zero_config", "--model", model, "--data", pairs, *base[2:], "--out", "pairs.toml").stdout
    rows = re.search(r"training.seq_len is (\d+), for each of the two answers of a row\ndata: (\d+) rows of at most (\d+) tokens, (\d+) on average", said)
    assert rows and int(rows[3]) == 2 * int(rows[1]) and int(rows[1]) % 64 == 0 and int(rows[4]) < int(rows[3]), said
    with open(place.path("pairs.toml")) as file:
        assert f"seq_len = {rows[1]}" in file.read()
    # The run has the rows that were told, whatever held them: pairs, judged answers, packed conversations and others.
    judged, chats = (os.path.join(place.data, *names) for names in (("preferences", "judged.jsonl"), ("smollm2", "gsm8k.jsonl")))
    template = ["--set", "data.chat_template=chatml"]
    for i, (data, more, length) in enumerate(((pairs, [], None), (judged, [], None), (chats, template, 512), (chats, [*template, "--set", "data.packing=false"], None),
                                              (chats, [*template, "--set", "data.packing=false", "--set", "training.validation_interval=2", "--set", f'data.validation=["{chats}"]'], 512))):
        said = place.run("zero_config", "--model", model, "--data", data, *base[2:], *more, "--out", f"rows{i}.toml").stdout
        line = next(line for line in said.splitlines() if line.startswith("data: "))
        assert place.run("zero_train", f"rows{i}.toml", "--dry-run", "--ranks", "2").stdout.endswith(line + "\n"), (data, more, line)
        with open(place.path(f"rows{i}.toml")) as file:
            seq_len = int(re.search(r"seq_len = (\d+)", file.read())[1])
        assert seq_len == length if length else seq_len < 512, (data, more, seq_len)
    error = place.run("zero_config", *base, "--data", "few.bin", "--seq-len", "16", "--set", "training.epochs=1", "--set", "lr_scheduler.warmup_steps=50", "--out", "never.toml", code=2).stderr
    assert "--set lr_scheduler.warmup_steps=50: must not exceed the run's 10 steps (43 rows of 16 tokens: 10 steps of 4 rows, " in error, error
    # The dry run counts them too.
    said = place.run("zero_train", "short.toml", "--dry-run", "--ranks", "2").stdout
    assert said.endswith("data: 43 rows of 16 tokens: 4 steps of 4 rows, 0.37 epochs\n"), said
    error = place.run("zero_train", "short.toml", "--dry-run", "--ranks", "2", "--set", "training.seq_len=1024", code=2).stderr
    assert "too few for one row" in error, error
    assert not os.path.exists(place.path("never.toml"))
    # Without weights and a tokenizer nothing is counted, and the estimate is printed.
    with open(place.path("corpus.txt"), "w") as file:
        file.write("words " * 400)
    said = place.run("zero_train", "config.toml", "--dry-run", "--set", "model.path=model/config.json", "--set", 'data.train=["corpus.txt"]').stdout
    assert "data: " not in said and "optimizer: " in said, said


def drive(place, words, answers):
    """Runs a program on a pseudo-terminal and answers each question when it stands there. Returns (exit code, all that was said)."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(place.folder)
        os.execvpe(os.path.join(place.bin, words[0]), words, place.environment)
    said, waiting = "", list(answers)
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            part = os.read(terminal, 4096).decode(errors="replace")
        except OSError:  # the program ended
            break
        if not part:
            break
        said += part
        if waiting and waiting[0][0] in said:
            os.write(terminal, (waiting.pop(0)[1] + "\n").encode())
            said += "\n"
    if time.monotonic() >= deadline:
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


def check_questions_on_a_terminal(place):
    code, said = drive(place, ["zero_config", "--ranks-per-node", "2", "--steps", "2", "--seq-len", "32", "--global-batch", "4", "--no-measure", "--output-dir", "out", "--out", "new.toml"],
                       [("Model: ", "no/such"), ("zero_fetch", "llama-tiny"), ("Data: ", "~/none.bin"), (os.environ.get("HOME", "") + "/none.bin: is no file", "tokens.bin"), ("Machine: ", "")])
    assert code == 0 and "wrote new.toml" in said and "scripts/train new.toml -np 2" in said, (code, said)
    with open(place.path("new.toml")) as file:
        text = file.read()
    assert "# States that are sharded over the ranks." in text and "\n[training]\n" in text, text
    assert len(place.train("new.toml", 2)) == 2


def main():
    args = arguments(__doc__)
    run_checks(args, globals(), lambda check, folder: check(Place(args, folder)))


if __name__ == "__main__":
    main()
