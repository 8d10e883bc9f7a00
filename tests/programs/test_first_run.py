"""Runs what a newcomer runs first: estimates without weights, the examples, a fine-tune and what it leaves, and runs that went wrong
although they ended in order.

usage: test_first_run.py BIN TESTS_DATA [-k NAME]        exits 1 when something is wrong
"""
import json
import os
import shutil
import struct
import subprocess

from checks import arguments, run_checks
from test_configuration import CONFIG, DEADLINE_SECONDS, Place

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def check_dry_runs_of_a_configuration_alone(place):
    """The model's config.json is enough for an estimate, here and elsewhere; a run is refused without the weights."""
    elsewhere = ("--ranks", "8", "--memory", "80GiB", "--device", "cuda")
    code, out, said = place.run("--dry-run", *elsewhere)
    assert code == 0 and not said, (code, said)
    os.remove(place.path("model", "model.safetensors"))
    for path in ("model", "model/config.json"):
        code, there, said = place.run("--dry-run", *elsewhere, "--set", f"model.path={path}")
        assert code == 0 and not said and there.splitlines()[0] == out.splitlines()[0], (path, code, there, said)
        code, here, said = place.run("--dry-run", "--set", f"model.path={path}", ranks=2)
        assert code == 0 and "fits" in here and said.count(f"--set model.path={path}: the model's weights are not there; its config.json is enough for this estimate") == 1, (code, here, said)
        code, _, said = place.run("--set", f"model.path={path}")
        assert code == 2 and said.count("error: ") == 1 and ("holds neither model.safetensors nor" if path == "model" else "serves --dry-run alone") in said, (code, said)
    # texts that would need the model's tokenizer
    with open(place.path("a.txt"), "w") as file:
        file.write("God said " * 99)
    code, _, said = place.run("--dry-run", "--set", "data.train=a.txt")
    assert code == 0, (code, said)
    configs = os.path.join(ROOT, "benchmarks", "family_configs")
    for name in sorted(os.listdir(configs)):
        code, out, said = place.run("--dry-run", *elsewhere, "--set", f"model.path={configs}/{name}")
        assert code == 0 and out.startswith("it fits: ") and "dropout" not in said, (name, code, out, said)
    done = subprocess.run([place.bin + "/zero_bench", "memory", "config.toml", "--fake-ranks", "4", "--predict"], cwd=place.folder, capture_output=True, text=True, timeout=DEADLINE_SECONDS)
    assert done.returncode == 0, done


def as_bf16(place):
    """The place's model with its weights cut to bf16."""
    path = place.path("model", "model.safetensors")
    with open(path, "rb") as file:
        header, data = json.loads(file.read(struct.unpack("<Q", file.read(8))[0])), file.read()
    for name, tensor in header.items():
        if name != "__metadata__":
            tensor["dtype"], tensor["data_offsets"] = "BF16", [offset // 2 for offset in tensor["data_offsets"]]
    text = json.dumps(header).encode()
    os.chmod(path, 0o644)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data[i + 2:i + 4] for i in range(0, len(data), 4)))


def types_of(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    return {tensor["dtype"] for name, tensor in header.items() if name != "__metadata__"}


def check_type_of_the_result(place):
    """It is the base's, or fp32 where fp32 trains, unless another one is asked for; a checkpoint's export follows it."""
    def trained(kind, *options):
        code, _, said = place.run("--set", "training.steps=1", "--set", "checkpoint.interval=1", "--overwrite", *options)
        with open(place.path("out", "config.toml")) as file:
            assert code == 0 and f'\nexport_dtype = "{kind}"\n' in file.read(), (code, said)
        shutil.rmtree(place.path("exported"), ignore_errors=True)
        done = subprocess.run([place.bin + "/zero_export", "out/checkpoints", "exported"], cwd=place.folder, capture_output=True, text=True, timeout=DEADLINE_SECONDS)
        assert done.returncode == 0 and types_of(place.path("exported", "model.safetensors")) == types_of(place.path("out", "model", "model.safetensors")), done
        return types_of(place.path("out", "model", "model.safetensors"))

    assert trained("fp32") == {"F32"}
    as_bf16(place)
    narrow = ("--set", "training.precision=bf16")
    assert trained("bf16", *narrow) == {"BF16"}
    assert trained("fp32", *narrow, "--set", "checkpoint.export_dtype=fp32") == {"F32"}
    assert trained("fp32", "--set", "training.precision=fp32") == {"F32"}  # nothing of what fp32 trained is rounded away
    assert trained("fp32", "--set", "model.preset=llama-tiny") == {"F32"}


def check_a_run_stands_for_its_adapter(place):
    """Where an adapter is named, and where a model is: over the model that the run was trained on."""
    def program(name, *words):
        done = subprocess.run([place.bin + "/" + name, *words], cwd=place.folder, capture_output=True, text=True, timeout=DEADLINE_SECONDS)
        assert done.returncode == 0, done
        return done.stderr

    code, _, said = place.run("--set", "lora.r=4", "--set", "optimizer.lr=0.1")
    assert code == 0, said
    losses = []
    for adapter in ("out", "out/adapter"):
        code, _, said = place.run("--set", f"lora.adapter={adapter}", "--set", "job.output_dir=again", "--overwrite")
        with open(place.path("again", "config.toml")) as file:
            assert code == 0 and 'adapter = "out/adapter"' in file.read(), (code, said)
        losses.append(place.losses("again"))
    assert losses[0] == losses[1] and losses[0] != place.losses(), losses
    said = program("zero_export", "out", "merged")
    assert "out: the adapter of this run over model, the model that it was trained on" in said, said
    program("zero_export", "model", "merged-by-hand", "--adapter", "out")
    with open(place.path("merged", "model.safetensors"), "rb") as one, open(place.path("merged-by-hand", "model.safetensors"), "rb") as other:
        assert one.read() == other.read()
    with open(place.path("ids.json"), "w") as file:
        file.write("[1, 2, 3, 4]")
    logits = []
    for number, words in enumerate((["out"], ["model", "--adapter", "out/adapter"], ["model"])):
        program("zero_generate", *words, "--ids", "ids.json", "--logits", f"{number}.safetensors")
        with open(place.path(f"{number}.safetensors"), "rb") as file:
            logits.append(file.read())
    assert logits[0] == logits[1] != logits[2]


def check_validation_that_is_off(place):
    settings = ("--set", "data.validation=tokens.bin", "--set", "training.validation_interval=0")
    for options in (("--dry-run",), ()):
        code, _, said = place.run(*settings, *options, ranks=2)
        assert code == 0 and said.count('--set training.validation_interval=0: the run is never validated, and ["tokens.bin"] of data.validation is not read') == 1, (options, code, said)


def check_runs_that_diverge(place):
    """They end with a warning and exit code 0; sound and short ones without."""
    words = "the loss ends at "
    code, _, said = place.run("--set", "training.steps=30", "--set", "optimizer.lr=10", "--set", "lr_scheduler.type=constant", ranks=2)
    assert code == 0 and said.count("warning: " + words) == 1 and "lower optimizer.lr" in said, (code, said)
    for options in (("--set", "training.steps=30"), ("--set", "training.steps=3", "--set", "optimizer.lr=10")):
        code, _, said = place.run("--overwrite", *options)
        assert code == 0 and words not in said, (options, code, said)


def check_data_are_refused_without_a_table(place):
    """What is wrong with a line of the data is not found below a screen of numbers."""
    os.mkdir(place.path("tokenizer"))
    shutil.copy(os.path.join(place.data, "added-tokens", "tokenizer.model"), place.path("tokenizer"))
    with open(place.path("a.jsonl"), "w") as file:
        file.write('{"text": "a"}\n{"text": "b\n')
    data = {"train": ["a.jsonl"], "tokenizer": "tokenizer/tokenizer.model"}
    place.config(CONFIG | {"data": data})
    code, out, said = place.run()
    assert code == 2 and "a.jsonl:2: not valid JSON" in said and "memory of one rank" not in out, (code, out, said)
    with open(place.path("a.jsonl"), "w") as file:
        file.write(''.join(json.dumps({"prompt": "God " * 40, "completion": "said"}) + "\n" for _ in range(9)))
    code, out, said = place.run()
    assert code == 2 and "a.jsonl: nothing is left to train with training.seq_len = 24 (9 examples, 0 of them left out as too long, 9 without anything to train; the first: a.jsonl:1): all that is trained lies beyond" in said, said
    with open(place.path("a.jsonl"), "a") as file:
        file.write(json.dumps({"text": "God said"}) + "\n")
    code, out, said = place.run("--set", "training.global_batch_size=1")
    assert code == 0 and "memory of one rank" in out and "warning: training data: 9 of 10 examples are lost: 9 have nothing to train in their first 24 tokens" in said, (code, out, said)


def check_examples(place):
    """They train as they stand but for their size: a smaller model, fewer steps."""
    os.symlink(os.path.join(ROOT, "examples"), place.path("examples"))
    small = ("--set", "training.steps=2", "--set", "lr_scheduler.warmup_steps=1", "--set", "training.device=cpu")
    shape = ("--set", "model.num_hidden_layers=1", "--set", "model.hidden_size=48", "--set", "model.intermediate_size=64")
    for name, result, options in (("pretrain", "model", shape), ("lora", "adapter", ()), ("qlora", "adapter", ()), ("full", "model", ())):
        code, out, said = place.run(*small, *options, config=f"examples/{name}.toml")
        assert code == 0 and f"the {result} is in outputs/{name}/{result}" in out, (name, code, out, said)
    for name in ("lora", "qlora"):
        with open(place.path("outputs", name, "config.toml")) as file:
            assert ('quantization = "nf4"' in file.read()) == (name == "qlora")


def main():
    args = arguments(__doc__)
    run_checks(args, globals(), lambda check, folder: check(Place(folder, args.bin, args.data)))


if __name__ == "__main__":
    main()
