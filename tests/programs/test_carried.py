"""Trains on conversations as a user does, and asks of what the run leaves that it still knows how: template, added tokens and
end of an answer must be in model/, adapter/, merged folders and GGUF files, and a run that goes on must see them unchanged.

usage: test_carried.py BIN TESTS_DATA [-k NAME]        exits 1 when something is wrong
"""
import json
import os
import re
import shutil
import struct
import subprocess

from checks import arguments, environment, run_checks

TALK = [{"messages": [{"role": "user", "content": f"Who made {what}?"}, {"role": "assistant", "content": "It was made."}]} for what in ("heaven", "earth", "light", "water")]
TOKENS = {str(32000 + i): {"content": content, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
          for i, content in enumerate(("<|im_start|>", "<|im_end|>"))}


class Place:
    """A folder with conversations and a tokenizer: alone, or with tokens that its folder adds."""

    def __init__(self, folder, bin, data):
        self.folder, self.bin = folder, bin
        for name in ("alone", "adding"):
            os.makedirs(self.path(name))
            shutil.copy(os.path.join(data, "tinyllama-chat/tokenizer.model"), self.path(name))
        self.write("adding/tokenizer_config.json", json.dumps({"added_tokens_decoder": TOKENS, "model_max_length": 77}))
        self.write("talk.jsonl", "".join(json.dumps(one) + "\n" for one in TALK))

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, content):
        with open(self.path(name), "w") as file:
            file.write(content)

    def read(self, name):
        with open(self.path(name)) as file:
            return file.read()

    def json(self, name):
        return json.loads(self.read(name))

    def run(self, program, *options, text=None, code=0):
        """(standard output, standard error)"""
        done = subprocess.run([os.path.join(self.bin, program), *options], cwd=self.folder, input=text, capture_output=True, text=True, timeout=120)
        assert done.returncode == code, (program, options, done.returncode, done.stdout, done.stderr)
        return done.stdout, done.stderr

    def refused(self, program, *options, pieces):
        before = sorted(os.listdir(self.folder))
        _, err = self.run(program, *options, code=2)
        messages = [line for line in err.splitlines() if line.startswith("error: ")]
        assert len(messages) == 1 and all(piece in messages[0] for piece in pieces), (options, err)
        assert sorted(os.listdir(self.folder)) == before, options
        return err

    def train(self, out, model, *options, code=0, template="", tokenizer=""):
        settings = {"job.output_dir": out, "data.train": ["talk.jsonl"], "data.chat_template": template, "data.tokenizer": tokenizer, "training.steps": 2, "training.seq_len": 64,
                    "training.precision": "fp32", "training.device": "cpu", "optimizer.lr": 0.01, "checkpoint.interval": 1} | model
        self.write("config.toml", "".join(f"[{section}]\n" + "".join(f"{key.split('.')[1]} = {json.dumps(value)}\n" for key, value in settings.items() if key.startswith(section + "."))
                                          for section in dict.fromkeys(key.split(".")[0] for key in settings)))
        done = subprocess.run([self.bin + "/zero_train", "config.toml", *options], cwd=self.folder, capture_output=True, text=True, timeout=120, env=environment())
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def same(self, a, b):
        done = subprocess.run(["diff", "-r", self.path(a), self.path(b)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


def gguf_values(path):
    """Keys and values of a GGUF file, of lists only their lengths."""
    with open(path, "rb") as file:
        def number(format):
            return struct.unpack("<" + format, file.read(struct.calcsize(format)))[0]

        def value(kind):
            if kind == 8:
                return file.read(number("Q")).decode()
            if kind == 9:
                item, count = number("I"), number("Q")
                return len([value(item) for _ in range(count)])
            return number({4: "I", 5: "i", 6: "f", 7: "?"}[kind])

        assert file.read(4) == b"GGUF" and number("I") == 3
        number("Q")
        return {file.read(number("Q")).decode(): value(number("I")) for _ in range(number("Q"))}


PRESET = {"model.preset": "llama-tiny", "model.max_position_embeddings": 256}
CHAT = ("--max-new-tokens", "6")


def check_model(place):
    place.train("out/run", PRESET | {"model.vocab_size": 32002}, template="chatml", tokenizer="adding/tokenizer.model")
    settings = place.json("out/run/model/tokenizer_config.json")
    jinja = place.read("out/run/model/chat_template.jinja")
    assert settings["chat_template"] == jinja and "<|im_start|>" in jinja and settings["model_max_length"] == 77 and settings["added_tokens_decoder"] == TOKENS, settings
    assert settings["tokenizer_class"] == "LlamaTokenizer" and settings["bos_token"] == "<s>" and settings["eos_token"] == "</s>" and settings["legacy"] is False, settings
    assert place.json("out/run/model/generation_config.json")["eos_token_id"] == [2, 32001] == place.json("out/run/model/config.json")["eos_token_id"]
    answers, err = place.run("zero_generate", "out/run", "--chat", *CHAT, text="Who made fire?\n")
    assert answers.endswith("\n") and "out/run/model: " in err, (answers, err)
    assert place.run("zero_generate", "out/run/checkpoints", "--chat", *CHAT, text="Who made fire?\n")[0] == answers
    _, err = place.run("zero_generate", "out/run/model", "--prompt", "Who", "--max-new-tokens", "5")
    assert len(err.splitlines()) == 3 and err.splitlines()[2].endswith("note: the model has a chat template, and a prompt is continued without it; --chat answers by it"), err
    assert re.search(r", read in \d+\.\d s$", err, re.M) and not re.search(r"\.\d{3}", err), err
    assert re.search(r"prompt: 2 tokens in \d+\.\d\d s; made \d in \d+\.\d\d s more(, \d+ a second)?$", err, re.M), err
    place.run("zero_export", "out/run/checkpoints", "again")
    place.same("again", "out/run/model")
    place.run("zero_export", "out/run", "a.gguf", "--gguf", "F16")
    values = gguf_values(place.path("a.gguf"))
    assert values["tokenizer.chat_template"] == jinja and values["general.name"] == "run", values
    place.run("zero_export", "out/run", "b.gguf", "--gguf", "F32")  # the file's own tokens and template
    assert place.run("zero_generate", "b.gguf", "--chat", *CHAT, text="Who made fire?\n")[0] == answers
    said = place.train("out/two", {"model.path": "out/run/checkpoints"}, code=2)
    assert 'model.path' not in said and 'path = "out/run/checkpoints": holds a checkpoint' in said and "zero_export out/run/checkpoints/step-00000002 MODEL" in said, said
    assert values["tokenizer.ggml.eos_token_id"] == 2 and values["tokenizer.ggml.eot_token_id"] == 32001 and values["tokenizer.ggml.tokens"] == 32002, values


def check_adapter(place):
    place.train("out/base", PRESET | {"model.vocab_size": 32000, "data.train": ["talk.txt"]}, tokenizer="alone/tokenizer.model")
    assert not os.path.exists(place.path("out/base/model/chat_template.jinja"))
    place.refused("zero_generate", "out/base", "--chat", pieces=["no chat template"])
    _, said = place.run("zero_generate", "out/base", "--prompt", "word " * 250, "--max-new-tokens", "9")
    assert "the context of 256 tokens is full" in said, said
    place.refused("zero_generate", "out/base", "--prompt", os.fsdecode(b"f\xfcr"), pieces=["--prompt: byte 1 (0xFC) is not UTF-8"])
    with open(place.path("prompts"), "wb") as file:
        file.write(b"one\nf\xfcr\n")
    place.refused("zero_generate", "out/base", "--prompts", "prompts", pieces=["prompts: byte 5 (0xFC) is not UTF-8"])
    place.write("prompts", "one\n \t\n\n")  # editors leave blank lines at the end
    out, _ = place.run("zero_generate", "out/base", "--prompts", "prompts", "--max-new-tokens", "1")
    assert out.count("\n") == 1, out
    place.write("prompts", "one\n \t\ntwo\n")
    said = place.refused("zero_generate", "out/base", "--prompts", "prompts", pieces=["prompts:2: is blank, and each line is a prompt"])
    assert "read in" not in said, said  # before the weights are read
    place.refused("zero_generate", "out/base", "--prompts", "prompts", "--tokenizer", "nowhere", pieces=["prompts:2: "])
    place.refused("zero_generate", "out/base", "--prompt", "x", "--tokenizer", "nowhere", pieces=["--tokenizer nowhere: there is no such file or folder"])
    place.refused("zero_generate", "out/base", "--prompt", "x", "--seed", "-1", pieces=["--seed: -1 is below 0"])
    os.rename(place.path("out/base/model/tokenizer.model"), place.path("taken"))
    place.refused("zero_generate", "out/base", "--prompt", "x", pieces=["out/base/model: holds no tokenizer.json", "name one by --tokenizer"])
    os.rename(place.path("taken"), place.path("out/base/model/tokenizer.model"))
    lora = {"model.path": "out/base/model", "lora.r": 2}
    place.train("out/lora", lora, template="zephyr")
    jinja = place.read("out/lora/adapter/chat_template.jinja")
    assert "<|assistant|>" in jinja and os.path.exists(place.path("out/lora/adapter/tokenizer.model"))
    answers, _ = place.run("zero_generate", "out/base", "--adapter", "out/lora", "--chat", *CHAT, text="Who made fire?\n")
    _, said = place.run("zero_generate", "out/base", "--adapter", "out/lora", "--prompt", "Who", "--max-new-tokens", "2")
    assert "note: the model has a chat template" in said, said  # the base has none
    place.run("zero_export", "out/base", "merged", "--adapter", "out/lora")
    assert place.read("merged/chat_template.jinja") == jinja == place.json("merged/tokenizer_config.json")["chat_template"]
    assert place.run("zero_generate", "merged", "--chat", *CHAT, text="Who made fire?\n")[0] == answers
    place.run("zero_export", "out/base", "a.gguf", "--gguf", "F32", "--adapter", "out/lora/adapter")
    values = gguf_values(place.path("a.gguf"))
    assert values["tokenizer.chat_template"] == jinja and values["general.name"] == "base-lora", values
    place.run("zero_export", "out/lora/checkpoints", "again")
    place.same("again", "out/lora/adapter")
    # training goes on from the adapter with the template that it was trained with
    place.train("out/more", lora | {"lora.adapter": "out/lora/adapter"} | {"lora.r": 2})
    assert place.read("out/more/adapter/chat_template.jinja") == jinja
    assert place.run("zero_generate", "out/lora", "--chat", *CHAT, text="Who made fire?\n")[0] == answers
    place.run("zero_export", "out/lora", "merged-run")
    place.same("merged-run", "merged")
    place.refused("zero_generate", "out/base", "--prompt", "x", "--adapter", "out/lora/checkpoints", pieces=["zero_export out/lora/checkpoints/step-00000002 ADAPTER"])
    # A checkpoint stands for the model with the adapter, its tokenizer and its template.
    assert place.run("zero_generate", "out/lora/checkpoints/step-00000002", "--chat", *CHAT, text="Who made fire?\n")[0] == answers


def check_resume(place):
    model = {"model.path": "base"}
    place.train("out/run", PRESET | {"model.vocab_size": 32002}, template="chatml", tokenizer="adding/tokenizer.model")
    shutil.move(place.path("out/run/model"), place.path("base"))
    place.train("out/two", model)
    for name in ("chat_template.jinja", "tokenizer_config.json"):
        shutil.copy(place.path("base", name), place.path(name))

    def resumed(code, *options):
        return place.train("out/two", model | {"training.steps": 4}, "--resume", *options, code=code)

    place.write("base/chat_template.jinja", place.read("chat_template.jinja").replace("<|im_start|>' +", "<|im_start|>' + '' +"))
    said = resumed(2)
    assert "chat_template" in said and ": is chatml, " in said and "--accept-change data.chat_template" in said, said
    shutil.copy(place.path("chat_template.jinja"), place.path("base"))
    settings = place.json("tokenizer_config.json")
    place.write("base/tokenizer_config.json", json.dumps(settings | {"legacy": True}))
    said = resumed(2)
    assert "tokenizer" in said and "added tokens and rules" in said and "--accept-change data.tokenizer" in said, said
    place.write("base/tokenizer_config.json", json.dumps(settings | {"model_max_length": 5}))
    said = resumed(2, "--accept-change", "data.tokeniser")
    assert "--accept-change data.tokeniser: there is no such key; the nearest known key is `data.tokenizer`" in said, said
    assert "resumed after step 2" in resumed(0)


def check_dry_run_without_files(place):
    """Where the model's folder has config.json alone, a dry run of a resumption compares what is here."""
    place.train("out/base", PRESET | {"model.vocab_size": 32002}, template="chatml", tokenizer="adding/tokenizer.model")
    lora, full = {"model.path": "base", "lora.r": 2}, {"model.path": "base"}
    shutil.copytree(place.path("out/base/model"), place.path("base"))
    for out, model in (("out/lora", lora), ("out/full", full)):
        place.train(out, model)
    shutil.rmtree(place.path("base"))
    os.mkdir(place.path("base"))
    shutil.copy(place.path("out/base/model/config.json"), place.path("base"))
    for out, model, missing in (("out/lora", lora, "model.path, data.tokenizer, data.chat_template"), ("out/full", full, "data.tokenizer, data.chat_template")):
        said = place.train(out, model, "--resume", "--dry-run", "--set", "training.steps=3")
        assert f"of the checkpoint of step 2; what is not here is not compared ({missing})" in said, said
        said = place.train(out, model, "--resume", "--dry-run", "--set", "training.seed=3", code=2)
        assert "seed=3: is 3 now" in said, said


def check_ids(place):
    """Ids need no tokenizer: one that was enlarged beyond the model goes along as it is, with a word about it; texts need it."""
    place.train("out/base", PRESET | {"model.vocab_size": 32000, "data.train": ["talk.txt"]}, tokenizer="alone/tokenizer.model")
    place.write("out/base/model/added_tokens.json", json.dumps({"<|new|>": 32000}))
    with open(place.path("ids.bin"), "wb") as file:
        file.write(struct.pack("<400H", *range(1, 401)))
    said = place.train("out/ids", {"model.path": "out/base/model", "data.train": ["ids.bin"]})
    assert said.count("warning: ") == 1 and "warning: out/base/model/tokenizer.model: has 32001 ids with the tokens that its folder adds, the model's vocab_size is 32000" in said, said
    assert place.json("out/ids/model/config.json")["vocab_size"] == 32000
    assert place.json("out/ids/model/tokenizer_config.json")["added_tokens_decoder"]["32000"]["content"] == "<|new|>"
    assert subprocess.run(["cmp", place.path("alone/tokenizer.model"), place.path("out/ids/model/tokenizer.model")]).returncode == 0
    place.run("zero_generate", "out/ids", "--prompt", "Who", "--max-new-tokens", "5")
    place.refused("zero_generate", "out/ids", "--prompt", "Who <|new|>", pieces=["32000"])
    for data in ("talk.txt", "talk.jsonl"):
        said = place.train("out/never", {"model.path": "out/base/model", "data.train": [data]}, template="zephyr", code=2)
        assert "32001 ids" in said and "the model's vocab_size is 32000" in said, said


def main():
    args = arguments(__doc__)

    def run(check, folder):
        place = Place(folder, args.bin, args.data)
        place.write("talk.txt", "Who made heaven? It was made. " * 80)
        check(place)

    run_checks(args, globals(), run)


if __name__ == "__main__":
    main()
