"""zero_config --from: configurations of axolotl and DeepSpeed become ones of zero_train.

usage: test_translations.py BIN TESTS_DATA [-k NAME]
"""
import json
import os

from test_plan import run_in_places


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


if __name__ == "__main__":
    run_in_places(globals(), __doc__)
