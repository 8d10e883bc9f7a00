"""Runs zero_train at the edges of its configuration: numbers at their limits, the estimate for another machine, runs that end without
a result, and the configuration that a run writes down.

usage: test_configuration.py BIN TESTS_DATA [-k NAME]        exits 1 when something is wrong
"""
import json
import os
import re
import shutil
import struct
import subprocess
import time

from checks import ModelPlace, arguments, environment, mpirun, run_checks

DEADLINE_SECONDS = 60
CONFIG = {
    "job": {"output_dir": "out"},
    "model": {"path": "model"},
    "data": {"train": ["tokens.bin"]},
    "training": {"steps": 6, "seq_len": 24, "local_batch_size": 1, "precision": "fp32", "device": "cpu"},
}
EIGHT_BILLION = {
    "job": {"output_dir": "/nonexistent/out"},
    "model": {"preset": "tinyllama-1.1b", "vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
              "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 8192},
    "data": {"train": ["/nonexistent/a.bin"]},
    "training": {"steps": 1, "seq_len": 8192},
    "activation_checkpoint": {"mode": "full"},
}


class Place(ModelPlace):
    def __init__(self, folder, bin, data):
        super().__init__(folder, bin, data, CONFIG)

    def run(self, *options, ranks=1, config="config.toml"):
        """(exit code, standard output, standard error)"""
        command = [self.bin + "/zero_train", config, *options]
        done = subprocess.run((mpirun(ranks) if ranks > 1 else []) + command, cwd=self.folder, capture_output=True, text=True, timeout=DEADLINE_SECONDS, env=environment())
        return done.returncode, done.stdout, done.stderr

    def losses(self, out="out"):
        with open(self.path(out, "metrics.jsonl")) as file:
            return [json.loads(line)["loss"] for line in file]


def check_limits(place):
    for pair in ("training.epochs=1e300", "checkpoint.keep=9223372036854775807", "lora.r=9223372036854775807", "activation_checkpoint.every=4294967296",
                 "training.seq_len=9007199254740992", "training.local_batch_size=9223372036854775807", "comm.deadline_seconds=1e300"):
        code, _, said = place.run("--dry-run", "--set", pair)
        assert code == 2 and f"error: --set {pair}: must be " in said, (pair, code, said)
    for pair in ("training.seed=9223372036854775807", "training.max_norm=1e30"):
        code, out, said = place.run("--dry-run", "--print-config", "--set", pair)
        assert code == 0 and pair.split(".")[1].replace("=", " = ").replace("1e30", "1e+30") in out, (pair, code, out, said)


def check_warm_up(place):
    place.config(CONFIG | {"training": {k: v for k, v in CONFIG["training"].items() if k != "steps"} | {"epochs": 0.05}, "lr_scheduler": {"warmup_steps": 100}})
    code, _, said = place.run()
    assert code == 2 and "warmup_steps = 100: must not exceed the run's" in said and "epochs = 0.05 over" in said and said.count("error: ") == 1, (code, said)
    assert not os.path.exists(place.path("out", "metrics.jsonl"))
    code, _, said = place.run("--set", "lr_scheduler.warmup_steps=0")
    assert code == 0, said


def check_fp16(place):
    """A run whose loss ends as NaN, or that skips every step, fails and writes no model."""
    code, _, said = place.run("--set", "training.precision=fp16", "--set", "optimizer.lr=10000", "--set", "checkpoint.interval=1", "--set", "checkpoint.keep=9")
    assert code == 1 and said.count("error: ") == 1 and "the loss is nan after the last step" in said and "optimizer.lr" in said, (code, said)
    assert not os.path.exists(place.path("out", "model"))
    saved = sorted(os.listdir(place.path("out", "checkpoints")))
    assert saved and saved[-1] != "step-00000006", saved
    code, _, said = place.run("--set", "training.precision=fp16", "--set", "optimizer.lr=10000", "--overwrite", ranks=2)
    assert code == 1 and "warning: step " in said and not re.search(r"warning: rank 1: (step|no checkpoint)", said), (code, said)


def check_optimizers(place):
    """A run tells, and so does its dry run, who treats what; one that diverges, what to lower."""
    groups = '[[optimizer.group]]\nmatch = ["*norm*"]\noptimizer = "lion"\nlr = 2e-4\n'
    place.config(CONFIG | {"optimizer": {"name": "muon", "lr": 0.02}}, groups)
    pieces = ("optimizer, group 1: lion lr 0.0002 on ", "optimizer: muon lr 0.02 on ", ", adamw lr 0.0003 on 2 tensors (", ", weight decay 0.1")
    for options in (("--dry-run",), ()):
        code, out, said = place.run(*options)
        assert code == 0 and all(piece in out + said for piece in pieces), (options, out, said)
    place.config(CONFIG | {"optimizer": {"name": "prodigy", "d0": 1e30}})
    code, _, said = place.run("--overwrite")
    assert code == 1 and said.count("error: ") == 1 and "lower optimizer.d_coef or optimizer.d0" in said, (code, said)


def check_dump_of_ragged_rows(place):
    with open(place.path("rows.jsonl"), "w") as file:
        for words in (3, 9, 5, 12):
            file.write(json.dumps({"text": " ".join(f"word {i}" for i in range(words))}) + "\n")
    place.config({"job": {"output_dir": "out"}, "model": {"preset": "llama-tiny", "vocab_size": 32000},
                  "data": {"train": ["rows.jsonl"], "tokenizer": os.path.join(place.data, "tinyllama-chat", "tokenizer.model"), "shuffle": False},
                  "training": {"steps": 1, "seq_len": 64, "local_batch_size": 1, "global_batch_size": 4, "precision": "fp32", "device": "cpu"}})
    logits = []
    for ranks in (1, 2):
        code, _, said = place.run("--overwrite", "--set", "metrics.dump_first_step=dump.safetensors", ranks=ranks)
        assert code == 0, said
        with open(place.path("dump.safetensors"), "rb") as file:
            size, = struct.unpack("<Q", file.read(8))
            header, data = json.loads(file.read(size)), file.read()
        entry = header["logits"]
        rows, longest, vocabulary = entry["shape"]
        assert rows == 4 and vocabulary == 32000, entry
        values = data[slice(*entry["data_offsets"])]
        row = longest * vocabulary * 4
        blank = [values[(i + 1) * row - vocabulary * 4:(i + 1) * row] == bytes(vocabulary * 4) for i in range(rows)]
        assert blank == [True, True, True, False], blank   # the last row is the longest
        logits.append(struct.unpack(f"<{len(values) // 4}f", values))
    assert max(abs(a - b) for a, b in zip(*logits)) < 1e-4


def check_presets_of_a_file(place):
    gpt2 = {"model_type": "gpt2", "vocab_size": 512, "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 64,
            "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    with open(place.path("gpt2.json"), "w") as file:
        json.dump(gpt2, file)
    place.config(CONFIG | {"model": {"preset": "gpt2.json", "n_layer": 3}})
    for ranks in (1, 2):
        code, out, said = place.run("--overwrite", ranks=ranks)
        assert code == 0, said
        with open(place.path("out", "model", "config.json")) as file:
            written = json.load(file)
        assert {key: written[key] for key in gpt2} == {**gpt2, "n_layer": 3}, written
    place.config(CONFIG | {"model": {"preset": "absent.json"}})
    code, _, said = place.run("--overwrite")
    assert code == 2 and "absent.json" in said and said.count("error: ") == 1, (code, said)


def check_stray_arguments(place):
    code, _, said = place.run("--lr", "1e-3")
    assert code == 2 and "--lr 1e-3: are no arguments" in said and "--set optimizer.lr=1e-3" in said, (code, said)


def check_a_tokenizer_that_does_more_than_merge_serves_all_and_is_told(place):
    with open(place.path("a.txt"), "w") as file:
        file.write("God said " * 99)
    with open(place.path("a.jsonl"), "w") as file:
        file.write(json.dumps({"text": "God said " * 99}) + "\n" + json.dumps({"prompt": "God", "completion": " said"}) + "\n")
    place.config({"job": {"output_dir": "out"}, "model": {"preset": "llama-tiny", "vocab_size": 300},
                  "data": {"train": ["a.txt"], "tokenizer": os.path.join(place.data, "normalisers", "nfkc.model")},
                  "training": {"steps": 1, "seq_len": 24, "local_batch_size": 1, "precision": "fp32", "device": "cpu"}})
    code, _, said = place.run(ranks=2)
    assert code == 0 and said.count("nfkc.model: is a unigram model: SentencePiece gives its ids here; transformers' AutoTokenizer may give others") == 1, (code, said)
    code, out, said = place.run("--set", "data.train=a.jsonl", "--preview", "2", "--json", "--set", "training.seq_len=512", ranks=1)
    text, completion = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and text["text"] == "God said " * 99 and 1 in completion["trained"] and completion["trained"][1] == 0, (code, out, said)
    done = subprocess.run([place.bin + "/zero_generate", "out/model", "--prompt", "God", "--max-new-tokens", "3", "--json"], cwd=place.folder, capture_output=True, text=True, timeout=DEADLINE_SECONDS)
    assert done.returncode == 0 and len(json.loads(done.stdout)["ids"]) == 3, done


def check_what_is_left_out_of_examples_is_told(place):
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "long " * 99}]
    with open(place.path("rows.jsonl"), "w") as file:
        file.write(json.dumps({"id": 7, "messages": turns}) + "\n")
    place.config({"job": {"output_dir": "out"}, "model": {"preset": "llama-tiny", "vocab_size": 32000},
                  "data": {"train": ["rows.jsonl"], "tokenizer": os.path.join(place.data, "tinyllama-chat", "tokenizer.model"), "chat_template": "zephyr"},
                  "training": {"steps": 1, "seq_len": 64, "local_batch_size": 1, "precision": "fp32", "device": "cpu"}})
    code, _, said = place.run(ranks=2)
    assert code == 0 and said.count("rows.jsonl: keys that are not read: id") == 1 and said.count("1 of 1 examples are longer than training.seq_len = 64") == 1, (code, said)


def check_runs_that_have_no_model_to_generate_by(place):
    def refused(path, piece):
        done = subprocess.run([place.bin + "/zero_generate", path, "--prompt", "a"], cwd=place.folder, capture_output=True, text=True, timeout=DEADLINE_SECONDS)
        assert done.returncode == 2 and piece in done.stderr, (path, done)

    code, _, said = place.run("--set", "lora.r=4")
    assert code == 0, said
    refused("out/checkpoints/", "error: out/checkpoints/: no checkpoints were written there, which takes [checkpoint] interval")
    os.rename(place.path("model"), place.path("moved"))
    refused("out", "error: out: is a run that made an adapter, and the model that it was trained on is not at model now: name the model, and --adapter out")
    os.rename(place.path("moved"), place.path("model"))
    os.rename(place.path("out", "config.toml"), place.path("out", "other"))
    os.symlink("other", place.path("out", "config.toml"))  # of somebody else's making
    refused("out", "error: out: is a run that made an adapter: name the model that it was trained on, model, and --adapter out")
    os.remove(place.path("out", "config.toml"))
    refused("out", "name the model that it was trained on and --adapter out")
    code, _, said = place.run("--set", "job.output_dir=whole")
    assert code == 0, said
    refused("whole/checkpoints", "no checkpoints were written there, which takes [checkpoint] interval; name the model, whole/model")
    shutil.rmtree(place.path("whole", "model"))
    refused("whole", "error: whole: is a run that has no model yet, and no checkpoints were written there")


def check_adapter_that_is_a_checkpoint(place):
    code, _, said = place.run("--set", "lora.r=4", "--set", "checkpoint.interval=6")
    assert code == 0, said
    shutil.rmtree(place.path("out", "adapter"))
    for path in ("out", "out/checkpoints", "out/checkpoints/step-00000006"):
        hint = "holds a checkpoint, and no adapter yet: make one of it, zero_export out/checkpoints/step-00000006 ADAPTER, and name ADAPTER"
        code, _, said = place.run("--set", "job.output_dir=again", "--set", f"lora.adapter={path}")
        assert code == 2 and f"--set lora.adapter={path}: {hint}" in said, (path, code, said)
        done = subprocess.run([place.bin + "/zero_generate", "model", "--adapter", path, "--prompt", "a"], cwd=place.folder, capture_output=True, text=True, timeout=DEADLINE_SECONDS)
        assert done.returncode == 2 and f"--adapter {path}: {hint}" in done.stderr, (path, done)


def check_resolved_configuration(place):
    """What a run writes down is the same run again."""
    place.config(CONFIG | {"model": {"preset": "llama-tiny", "num_hidden_layers": 1, "vocab_size": 512}})
    code, _, said = place.run(ranks=2)
    assert code == 0, said
    with open(place.path("out", "config.toml")) as file:
        text = file.read()
    assert text.startswith("# zero_train ") and ", 2 ranks\n" in text and "\nglobal_batch_size = 2\n" in text and "\nvocab_size = 512\n" in text, text
    shutil.copy(place.path("out", "config.toml"), place.path("again.toml"))
    code, _, said = place.run("--set", "job.output_dir=again", config="again.toml")   # one rank: two micro-batches make the same batch
    assert code == 0, said
    assert max(abs(a - b) for a, b in zip(place.losses(), place.losses("again"))) < 1e-5


def check_other_machine(place):
    place.config(EIGHT_BILLION)
    begin = time.monotonic()
    code, out, said = place.run("--dry-run", "--ranks", "64", "--memory", "80GiB", "--device", "cuda", "--ranks-per-node", "8")
    assert code == 0 and not said and out.startswith("it fits: a rank takes "), (code, out, said)
    assert max(map(len, out.splitlines())) <= 80 and "of 79.00 GiB of GPU memory" in out, out
    assert [line.split()[0] for line in out.splitlines() if line.endswith((" yes", "  no"))] == ["0", "1", "2", "3*"], out
    assert "[training]" not in out and time.monotonic() - begin < 20, out    # two seconds on an idle machine
    code, out, said = place.run("--dry-run", "--ranks", "2", "--memory", "24GiB", "--device", "cuda")
    assert code == 2 and out.startswith("it does NOT fit: a rank takes ") and "--set offload.optimizer=" in said, (code, out, said)
    code, out, said = place.run("--dry-run", "--ranks", "64", "--device", "cuda")
    assert code == 2 and "as in --memory 80GiB" in said, said
    code, out, said = place.run("--dry-run", "--ranks", "64", "--memory", "80", "--device", "cuda")
    assert code == 2 and "--memory 80: needs a unit; gibibytes are written --memory 80GiB" in said, said
    code, out, said = place.run("--dry-run", "--ranks", "64", "--memory", "80Gi", "--device", "cuda")
    assert code == 0 and "of 79.00 GiB of GPU memory" in out, (code, out, said)
    code, out, said = place.run("--ranks", "64", "--memory", "80GiB")
    assert code == 2 and "--dry-run" in said, said
    code, out, said = place.run("--dry-run", "--ranks", "64", "--memory", "24GiB", "--device", "cuda", "--set", "training.seq_len=2048", "--set", "activation_checkpoint.mode=none")
    stages = re.search(r"^  activation_checkpoint\.keep is on at stage ([\d, ]+), off at stage ([\d, ]+)$", out, re.M)
    assert code == 0 and stages and sorted(", ".join(stages.groups()).split(", ")) == ["0", "1", "2", "3"], (code, out, said)
    many = ("--memory", "400GiB")
    code, out, said = place.run("--dry-run", "--ranks", "8", "--ranks-per-node", "3", *many)
    assert code == 0 and "warning: --ranks-per-node 3: 8 ranks fill 2 nodes and leave 2 for another one; the estimate is of a full node" in said, (code, said)
    code, out, said = place.run("--dry-run", "--ranks", "2", "--ranks-per-node", "8", *many)
    assert code == 2 and "--ranks-per-node 8: is more than the --ranks 2 of the run" in said, (code, said)


def check_ranks_that_are_not_started(place):
    """One process predicts for ranks of this machine as those ranks do that mpirun starts."""
    layout = ("--dry-run", "--set", "parallel.tensor=2")
    code, _, said = place.run(*layout)
    assert code == 2 and "parallel.tensor=2: must divide the number of ranks, 1; legal here: --set parallel.tensor=1, or --ranks 2" in said, (code, said)
    code, alone, said = place.run(*layout, "--ranks", "2")
    assert code == 0 and alone.startswith("it fits: 2 ranks take ") and " of this node (" in alone, (code, alone, said)
    code, started, said = place.run(*layout, ranks=2)
    assert code == 0, (code, started, said)
    states = [re.findall(r"^  (?:parameters|gradients|optimizer state) .*$", out, re.M) for out in (alone, started)]
    assert states[0] == states[1] and len(states[0]) == 4, states


def check_ranks_that_begin_otherwise(place):
    """Ranks with another configuration, other files or other words are told of by name before anything is written; so is a task that MPI knows alone."""
    program = [place.bin + "/zero_train", "config.toml"]
    start = [word for word in mpirun(2) if word not in ("-np", "2")]

    def refusal(*other, of=program):
        done = subprocess.run([*start, "-np", "2", *program, ":", "-np", "1", *of, *other], cwd=place.folder, capture_output=True, text=True, timeout=DEADLINE_SECONDS, env=environment())
        assert done.returncode == 2 and done.stderr.count("error: ") == 1 and "the ranks do not begin alike" in done.stderr, (other, done)
        assert not os.path.exists(place.path("out")), other
        return done.stderr

    assert "\n  optimizer.lr: 0.001 on rank 0, 0.5 on rank 2\n" in refusal("--set", "optimizer.lr=0.5"), refusal("--set", "optimizer.lr=0.5")
    assert "the command line: [] on rank 0, [\"--overwrite\"] on rank 2" in refusal("--overwrite")
    shutil.copytree(place.path("model"), place.path("other"))
    os.remove(place.path("other", "model.safetensors"))
    shutil.copy(place.path("model", "model.safetensors"), place.path("other", "model.safetensors"))
    with open(place.path("other", "model.safetensors"), "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\x11")
    said = refusal("--set", "model.path=other")
    assert "model.path: \"model\" on rank 0, \"other\" on rank 2" in said and "model.safetensors" in said, said
    with open(place.path("program"), "wb") as file, open(place.bin + "/zero_train", "rb") as original:
        file.write(original.read() + b"\0")
    os.chmod(place.path("program"), 0o755)
    assert "\n  the program: " in refusal(of=["./program", "config.toml"])
    alone = subprocess.run(program, cwd=place.folder, capture_output=True, text=True, timeout=DEADLINE_SECONDS, env=environment(SLURM_STEP_NUM_TASKS="4"))
    assert alone.returncode == 2 and "started 4 tasks (SLURM_STEP_NUM_TASKS), but MPI sees only this process" in alone.stderr, alone
    assert place.run(ranks=2)[0] == 0


def check_bench_table(place):
    program = place.bin + "/zero_bench"
    for more in ((), ("--set", "lora.r=8", "--set", "lora.quantization=nf4")):
        place.config(EIGHT_BILLION)
        done = subprocess.run([program, "memory", "config.toml", "--fake-ranks", "1,64", "--predict", *more], cwd=place.folder, capture_output=True, text=True, timeout=DEADLINE_SECONDS)
        assert done.returncode == 0 and max(map(len, done.stdout.splitlines())) <= 100 and " - " not in done.stdout, done.stdout + done.stderr
        row = next(line for line in done.stdout.splitlines() if line.split()[:2] == ["1", "0"])
        formula, unit = float(row.split()[2]), row.split()[3]
        assert unit == "GiB" and (formula < 10 if more else formula > 100), row
    assert subprocess.run([program, "--help"], capture_output=True).returncode == 0
    assert subprocess.run([program, "memory"], capture_output=True).returncode == 2


def check_help(place):
    for command in ("zero_train", "zero_generate", "zero_export", "zero_bench", "zero_bench blocks", "zero_bench checkpoint", "zero_bench memory", "zero_bench step", "zero_bench model", "zero_bench optimizer", "zero_bench products", "zero_bench collectives"):
        program, *more = command.split()
        done = subprocess.run([os.path.join(place.bin, program), *more, "--help"], capture_output=True, text=True, timeout=DEADLINE_SECONDS)
        wide = [line for line in done.stdout.splitlines() if len(line) > 80]
        assert done.returncode == 0 and done.stdout and not wide, (command, wide, done.stderr)


def check_misspelt_options(place):
    for command, hint in (("zero_train config.toml --dry_run", "--dry_run: is no argument; the option is --dry-run ("),
                          ("zero_train --sett zero.stage=2 config.toml", "; the nearest option is --set ("),
                          ("zero_train --dry_run --ranks 2 config.toml", "--dry_run: is no argument; the option is --dry-run ("),
                          ("zero_train config.toml --lr 1e-3", "--set optimizer.lr=1e-3"),
                          ("zero_generate model --prompt a --max_new_tokens 5", "; the option is --max-new-tokens ("),
                          ("zero_generate model --promt a", "; the nearest option is --prompt ("),
                          ("zero_generate model --lr 3", "--lr 3: are no arguments ("),
                          ("zero_train config.toml --preview -1", "-1 not in range 1 to 1000000000 ("),
                          ("zero_export model out.gguf --gguf Q4_K_M", "Q4_K_M: is not written here (F32, F16, BF16, Q8_0 and Q4_0 are): write F16, then let llama.cpp's llama-quantize make it: llama-quantize OUT.gguf OUT2.gguf Q4_K_M"),
                          ("zero_export model out --overwrit", "; the nearest option is --overwrite ("),
                          ("zero_generate model --prompt a --chat-template zephir --chat", "--chat-template zephir: is none of the templates known here"),
                          ("zero_train config.toml --dry-run --ranks 2 --ranks-per-node 2", "error: --ranks-per-node 2: also needs --memory SIZE, "),
                          ("zero_train config.toml --dry-run --memory lots", "error: --memory lots: is no size; "),
                          ("zero_train config.toml --dry-run --memory 16MiB", "error: --memory 16MiB: is no more than the "),
                          ("zero_generate model --prompt a --top-p 2", "error: --top-p 2: must be above 0 and at most 1"),
                          ("zero_generate model --prompt a --temperature -1", "error: --temperature -1: must be 0 (greedy) or above"),
                          ("zero_generate model --chat --chat-template zephir", "--chat-template zephir: is none of the templates known here, and no file with one; the nearest is zephyr; known are ")):
        program, *words = command.split()
        done = subprocess.run([os.path.join(place.bin, program), *words], cwd=place.folder, capture_output=True, text=True, timeout=DEADLINE_SECONDS)
        assert done.returncode == 2 and done.stderr.count("error: ") == 1 and hint in done.stderr, (command, done.returncode, done.stderr)


def main():
    args = arguments(__doc__)
    run_checks(args, globals(), lambda check, folder: check(Place(folder, args.bin, args.data)))


if __name__ == "__main__":
    main()
