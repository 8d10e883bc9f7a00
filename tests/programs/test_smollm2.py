"""A trained model, SmolLM2-135M-Instruct in 4 bits, beside llama.cpp and transformers: ids, answers, logits, a loss. Then a LoRA run and its result.
tests/data/make_smollm2.py made the figures. `scripts/setup smollm2` fetches the model; without it the test is skipped.

usage: test_smollm2.py BIN TESTS_DATA [-k NAME]        exits 1 when something is wrong, 77 without the model
"""
import array
import json
import math
import os
import re
import shutil
import struct
import subprocess
import sys

from checks import arguments, environment, mpirun, run_checks

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
MODEL = os.path.join(ROOT, ".deps", "smollm2", "SmolLM2-135M-Instruct.gguf")
# The second best token may win if the two best log-probabilities are closer than this. llama.cpp rounds the inputs of a product with quantized weights to 8 bits.
NEAR = {"file": 0.5, "decoded": 0.01}
DEADLINE_SECONDS = 300
CONFIG = """[job]
output_dir = "out"
[model]
path = "model.gguf"
[data]
train = ["gsm8k.jsonl"]
[training]
steps = 2
seq_len = 128
local_batch_size = 1
global_batch_size = 2
precision = "bf16"
[optimizer]
lr = 1e-2
[lr_scheduler]
type = "constant"
[zero]
stage = 3
[lora]
r = 8
target_modules = "all-linear"
"""


class Place:
    """A folder with the model, and rows of GSM8K as conversations."""

    def __init__(self, folder, bin, data):
        self.folder, self.bin, self.data = folder, bin, os.path.join(data, "smollm2")
        os.symlink(os.path.abspath(MODEL), self.path("model.gguf"))
        shutil.copy(os.path.join(self.data, "gsm8k.jsonl"), folder)
        with open(os.path.join(self.data, "expected.json")) as file:
            self.expected = json.load(file)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def run(self, program, *words, ranks=1, given=None):
        """Standard output."""
        start = mpirun(ranks) if ranks > 1 else []
        done = subprocess.run(start + [os.path.join(self.bin, program), *map(str, words)], cwd=self.folder, env=environment(), input=given, capture_output=True, text=True,
                              timeout=DEADLINE_SECONDS)
        assert done.returncode == 0, (program, words, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout

    def answers(self, model, chats, *options):
        """Ids of the greedy answers to conversations."""
        with open(self.path("chats.jsonl"), "w") as file:
            file.writelines(json.dumps({"messages": chat["messages"]}) + "\n" for chat in chats)
        longest = max(len(chat["decoded"]["ids"]) for chat in chats)
        return [json.loads(line)["ids"] for line in self.run("zero_generate", model, *options, "--prompts", "chats.jsonl", "--max-new-tokens", longest).splitlines()]


def expect_answers(found, chats, weights):
    """llama.cpp's greedy answers up to the first near tie. Returns the number of tokens that were compared."""
    compared = 0
    for ids, chat in zip(found, chats):
        theirs, margins = chat[weights]["ids"], chat[weights]["margins"]
        clear = next((number for number, margin in enumerate(margins) if margin < NEAR[weights]), len(theirs))
        assert ids[:clear] == theirs[:clear], (weights, chat["messages"], ids, theirs, margins)
        compared += clear
    return compared


def check_answers_of_llama_cpp(place):
    """The ids of conversations, and the answers by the file and by its decoded weights."""
    chats = place.expected["chats"]
    made = place.run("zero_tokenize", "model.gguf", given="".join(json.dumps({"messages": chat["messages"], "add_generation_prompt": True}) + "\n" for chat in chats))
    for line, chat in zip(made.splitlines(), chats):
        assert json.loads(line)["ids"] == chat["start"], (chat["messages"], line)
    found = place.answers("model.gguf", chats)
    compared = {weights: expect_answers(found, chats, weights) for weights in NEAR}
    assert compared["decoded"] >= 200 and compared["file"] >= 30, compared


def check_logits_of_transformers(place):
    for case in place.expected["texts"]:
        with open(place.path("ids.json"), "w") as file:
            json.dump(case["ids"], file)
        assert json.loads(place.run("zero_tokenize", "model.gguf", given=json.dumps({"text": case["text"]}) + "\n"))["ids"] == case["ids"], case["text"]
        place.run("zero_generate", "model.gguf", "--ids", "ids.json", "--logits", "logits.safetensors")
        with open(place.path("logits.safetensors"), "rb") as file:
            header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
            logits = array.array("f", file.read())
        count, vocabulary = len(case["ids"]), header["logits"]["shape"][2]
        assert header["logits"]["shape"] == [1, count, vocabulary], header
        for position in range(count):
            row = logits[position * vocabulary:(position + 1) * vocabulary]
            for id, expected in zip(case["best"][position], case["logits"][position]):
                assert abs(row[id] - expected) <= 1e-4, (case["text"], position, id, row[id], expected)
            top = max(row)
            normaliser = top + math.log(sum(math.exp(value - top) for value in row))
            assert abs(normaliser - case["normalisers"][position]) <= 1e-4, (case["text"], position, normaliser)


def check_loss_of_transformers(place):
    said = json.loads(place.run("zero_evaluate", "model.gguf", "gsm8k.jsonl", "--precision", "fp32", "--json", ranks=2))
    assert abs(said["loss"] - place.expected["loss"]) <= 1e-4 and said["tokens"] == place.expected["trained_tokens"], said


def check_result_of_a_run(place):
    """A tuned model gives the same answers as an adapter, as its run and merged. Its adapter for llama.cpp has all tensors."""
    with open(place.path("config.toml"), "w") as file:
        file.write(CONFIG)
    place.run("zero_train", "config.toml", ranks=2)
    chats = place.expected["chats"][:2]
    tuned = place.answers("model.gguf", chats, "--adapter", "out/adapter")
    assert tuned != [chat["decoded"]["ids"] for chat in chats], tuned
    place.run("zero_export", "model.gguf", "merged", "--adapter", "out", "--type", "fp32")
    assert place.answers("merged", chats) == tuned == place.answers("out", chats)
    place.run("zero_export", "model.gguf", "adapter.gguf", "--gguf-adapter", "out")
    trained, written = (os.path.getsize(place.path(name)) for name in ("out/adapter/adapter_model.safetensors", "adapter.gguf"))
    assert abs(trained - written) < 0.01 * trained, (trained, written)


def check_commands_of_readme(place):
    """Those that fine-tune a model, in small; nothing is built or fetched."""
    with open(os.path.join(ROOT, "README.md")) as file:
        block = re.search(r"^## Fine-tune a real model\n.*?^```sh\n(.*?)^```", file.read(), re.M | re.S)[1]
    for name in ("examples", "scripts", ".deps"):
        os.symlink(os.path.join(ROOT, name), place.path(name))
    os.makedirs(place.path("build/release"))
    os.symlink(place.bin, place.path("build/release/bin"))
    fetch, train, chat = block.splitlines()
    assert fetch.startswith("scripts/setup smollm2 && scripts/build release programs") and train.startswith("scripts/train "), block
    for command in ("scripts/setup smollm2", train.partition("  #")[0] + " -- --set training.steps=2 --set lr_scheduler.warmup_steps=0", chat.partition("  #")[0] + " --max-new-tokens 8"):
        done = subprocess.run(["bash", "-c", command], cwd=place.folder, env=environment(ZERO_BIN=place.bin), input="def one():\n", capture_output=True, text=True,
                              timeout=DEADLINE_SECONDS)
        assert done.returncode == 0, (command, done)
    assert done.stdout.strip(), done


def main():
    args = arguments(__doc__)
    if not os.path.exists(MODEL):
        print("skipped: there is no .deps/smollm2/SmolLM2-135M-Instruct.gguf, which `scripts/setup smollm2` fetches")
        sys.exit(77)
    run_checks(args, globals(), lambda check, folder: check(Place(folder, args.bin, args.data)))


if __name__ == "__main__":
    main()
