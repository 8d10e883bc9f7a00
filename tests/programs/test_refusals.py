"""Runs zero_train on two ranks with bad input of every kind. Each must end with exit code 2 and one message, from rank 0,
that names the place and the rule; nothing may be written, and nothing may hang.

usage: test_refusals.py ZERO_TRAIN TESTS_DATA [-k NAME] [-v]        exits 1 when a case fails
"""
import argparse
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

from checks import ModelPlace, environment, mpirun

DEADLINE_SECONDS = 60
CONFIG = {
    "job": {"output_dir": "out"},
    "model": {"path": "model"},
    "data": {"train": ["tokens.bin"]},
    "training": {"steps": 2, "seq_len": 24, "local_batch_size": 3, "global_batch_size": 12, "precision": "fp32", "device": "cpu"},
}


class Place(ModelPlace):
    """Of one case, which spoils it."""

    def __init__(self, folder, data):
        super().__init__(folder, None, data, CONFIG)
        for folder, _, names in os.walk(self.folder):  # the originals may be read-only
            for name in names:
                os.chmod(os.path.join(folder, name), 0o644)

    def weights(self):
        """(header, data) of the model's safetensors file."""
        with open(self.path("model/model.safetensors"), "rb") as file:
            size, = struct.unpack("<Q", file.read(8))
            return json.loads(file.read(size)), file.read()

    def write_weights(self, header, data, size=None):
        text = json.dumps(header).encode()
        with open(self.path("model/model.safetensors"), "wb") as file:
            file.write(struct.pack("<Q", len(text) if size is None else size) + text + data)


def truncated_data(place):
    header, data = place.weights()
    place.write_weights(header, data[:-4])


def header_longer_than_file(place):
    header, data = place.weights()
    place.write_weights(header, data, size=1 << 60)


def header_is_no_json(place):
    with open(place.path("model/model.safetensors"), "r+b") as file:
        file.seek(8)
        file.write(b"[[[[")


def overlapping_tensors(place):
    header, data = place.weights()
    names = sorted(n for n in header if n.endswith("input_layernorm.weight"))
    header[names[0]]["data_offsets"] = header[names[1]]["data_offsets"]
    place.write_weights(header, data)


def offsets_beyond_file(place):
    header, data = place.weights()
    entry = header["model.norm.weight"]
    entry["data_offsets"] = [o + (1 << 40) for o in entry["data_offsets"]]
    place.write_weights(header, data)


def missing_weight(place):
    header, data = place.weights()
    header["model.norm.wieght"] = header.pop("model.norm.weight")
    place.write_weights(header, data)


def other_shape(place):
    header, data = place.weights()
    header["lm_head.weight"]["shape"].reverse()
    place.write_weights(header, data)


def token_beyond_vocabulary(place):
    with open(place.path("tokens.bin"), "r+b") as file:
        file.seek(2 * 100)
        file.write(struct.pack("<H", 60000))


def odd_bytes(place):
    with open(place.path("tokens.bin"), "ab") as file:
        file.write(b"x")


def no_window(place):
    with open(place.path("tokens.bin"), "r+b") as file:
        file.truncate(2 * 10)


def held_output(place):
    os.mkdir(place.path("out"))
    with open(place.path("out/metrics.jsonl"), "w") as file:
        file.write('{"version":1,"step":1}\n')


def text(content):
    def write(place):
        with open(place.path("config.toml"), "w") as file:
            file.write(content)
    return write


def keys(extra):
    return lambda place: place.config(CONFIG, extra)


def small_vocabulary(place):
    shutil.copy(os.path.join(place.data, "tinyllama-chat", "tokenizer.model"), place.path("tokenizer.model"))
    with open(place.path("rows.jsonl"), "w") as file:
        file.write('{"text": "a"}\n')
    text('[job]\noutput_dir = "out"\n[model]\npreset = "llama-tiny"\n[data]\ntrain = "rows.jsonl"\ntokenizer = "tokenizer.model"\n'
         "[training]\nsteps = 1\nseq_len = 8\n")(place)


def trains_on(name, content, tokenizer="added-tokens/tokenizer.model", keep=bytes):
    """Data of the given bytes, with a tokenizer of tests/data that `keep` may change."""
    def act(place):
        os.mkdir(place.path("tokenizer"))
        with open(os.path.join(place.data, tokenizer), "rb") as source, open(place.path("tokenizer/tokenizer.model"), "wb") as target:
            target.write(keep(source.read()))
        with open(place.path("tokenizer/tokenizer_config.json"), "w") as file:
            file.write('{"tokenizer_class": "LlamaTokenizer"}')
        with open(place.path(name), "wb") as file:
            file.write(content)
        place.config(CONFIG | {"data": {"train": [name], "tokenizer": "tokenizer/tokenizer.model", "chat_template": "zephyr"}, "model": {"path": "model"}})
    return act


def answer(keys):
    return ('{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", ' + keys + "}]}\n").encode()


def fill_character_map(model):
    """The normaliser's table leads everywhere: behind its name, a tag, the map's length (3 bytes) and the table's (4)."""
    begin = model.rindex(b"nmt_nfkc\x12") + len(b"nmt_nfkc\x12") + 3 + 4
    return model[:begin] + b"\xff" * 200000 + model[begin + 200000:]


def tokenizer_json_alone(place):
    with open(place.path("model/tokenizer.json"), "w") as file:
        file.write("{}")
    with open(place.path("a.txt"), "w") as file:
        file.write("God said")


def model_below(name):
    def act(place):
        shutil.copytree(place.path("model"), place.path(name))
    return act


def adapter_at(name):
    def act(place):
        os.makedirs(place.path(name))
        with open(place.path(name + "/adapter_config.json"), "w") as file:
            file.write("{}")
    return act


def gguf_at(name):
    def act(place):
        os.makedirs(os.path.dirname(place.path(name)), exist_ok=True)
        with open(place.path(name), "wb") as file:
            file.write(b"GGUF" + bytes(20))
    return act


def files_in(folder, *names):
    def act(place):
        os.mkdir(place.path(folder))
        for name in names:
            open(os.path.join(place.path(folder), name), "w").close()
    return act


def larger_tokenizer(of_model=None):
    """Text for a tokenizer of 32000 ids; another of tests/data may lie in the model's folder."""
    def act(place):
        trains_on("a.txt", b"God said " * 999, "tinyllama-chat/tokenizer.model")(place)
        if of_model:
            shutil.copy(os.path.join(place.data, of_model), place.path("model/tokenizer.model"))
    return act


def model_field(name, value):
    def spoil(place):
        with open(place.path("model/config.json")) as file:
            config = {**json.load(file), name: value}
        with open(place.path("model/config.json"), "w") as file:
            json.dump(config, file)
    return spoil


def other_head(place):
    """A head beside the embedding that config.json ties it to, which differs in its last element."""
    model_field("tie_word_embeddings", True)(place)
    header, data = place.weights()
    begin, end = header["model.embed_tokens.weight"]["data_offsets"]
    first, last = header["lm_head.weight"]["data_offsets"]
    place.write_weights(header, data[:first] + data[begin:end - 4] + struct.pack("<f", 9.0) + data[last:])


def remove(name):
    def act(place):
        path = place.path(name)
        shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    return act


# name, how the good place is spoilt (or None), --set pairs, pieces the message must hold
CASES = [
    ("no_config", remove("config.toml"), [], ["config.toml"]),
    ("broken_toml", text("[job\n"), [], ["config.toml:1", "TOML"]),
    ("unknown_section", keys("[optimiser]\nlr = 1.0\n"), [], ["config.toml:", "[optimizer]"]),
    ("misspelt_key", keys("sedd = 3\n"), [], ["config.toml:14", "sedd", "`seed`"]),
    ("unknown_key", None, ["zero.bucket_bytes=5"], ["--set zero.bucket_bytes=5", "unknown key"]),
    ("key_without_a_section", None, ["train_micro_batch_size_per_gpu=3"], ["--set train_micro_batch_size_per_gpu=3: ", "(DeepSpeed) is `local_batch_size` in [training]"]),
    ("key_of_another_tool", None, ["training.learning_rate=1e-3"], ["learning_rate", "`lr` in [optimizer]"]),
    ("section_of_another_tool", keys("[zero_optimization]\nstage = 3\n"), [], ["config.toml:14", "zero_optimization", "`stage` in [zero]"]),
    ("configuration_of_deepspeed", text('{"train_batch_size": 8, "zero_optimization": {"stage": 2}}\n'), [], ["config.toml:1", "DeepSpeed", "`global_batch_size` in [training]"]),
    ("configuration_in_yaml", text("output_dir: out\nbatch_size: 2\n"), [], ["config.toml:1", "YAML", "`local_batch_size` in [training]"]),
    ("configuration_is_a_folder", lambda place: (os.remove(place.path("config.toml")), os.mkdir(place.path("config.toml"))), [], ["config.toml", "is a directory"]),
    ("name_of_the_hub", None, ["model.path=TinyLlama/TinyLlama-1.1B"], ["does not exist", "hf download TinyLlama/TinyLlama-1.1B --local-dir"]),
    ("validation_that_never_comes", None, ["data.validation=tokens.bin"], ["--set data.validation=tokens.bin", "validation_interval"]),
    ("vocabulary_too_small", small_vocabulary, [], ["32000 ids", "set vocab_size = 32000 in [model]"]),
    ("tokenizer_too_large", larger_tokenizer("added-tokens/tokenizer.model"), [], ["[data] tokenizer = ", "32000 ids", "leave the key out"]),
    ("tokenizer_too_large_alone", larger_tokenizer(), [], ["[data] tokenizer = ", "32000 ids", "name the tokenizer that the model was made with", ".bin"]),
    ("tokenizer_too_large_of_the_model", larger_tokenizer("tinyllama-chat/tokenizer.model"), ["data.tokenizer=model/tokenizer.model"],
     ["data.tokenizer=model/tokenizer.model", "name the tokenizer that the model was made with"]),
    ("output_in_the_kernel", None, ["job.output_dir=/proc/x"], ["--set job.output_dir=/proc/x", "holds no files"]),
    ("output_of_a_long_name", None, ["job.output_dir=" + 300 * "a"], ["300 characters"]),
    ("tokenizer_of_a_long_name", None, ["data.tokenizer=" + 300 * "a"], ["data.tokenizer", "cannot be looked at: File name too long"]),
    ("model_is_a_file", None, ["model.path=tokens.bin"], ["tokens.bin is not a directory"]),
    ("training_file_is_a_folder", lambda place: os.mkdir(place.path("a.txt")), ["data.train=a.txt"], ["a.txt", "is not a file"]),
    ("place_that_a_shell_expands", None, ["job.output_dir=~/out"], ["--set job.output_dir=~/out", "~ and variables are not expanded"]),
    ("model_that_a_shell_expands", None, ["model.path=$HOME/m"], ["$HOME/m: ~ and variables are not expanded"]),
    ("folder_of_training_files", files_in("d[1]", "b.txt", "a.txt", "c.jsonl", "d.md"), ['data.train="d[1]"'],
     ['--set data.train="d[1]": ', 'folders are not expanded; list the files: ["d[1]/a.txt", "d[1]/b.txt"]']),
    ("folder_without_training_files", files_in("d", "d.md"), ["data.train=d"], ["--set data.train=d: d is not a file, and folders are not expanded; list the files that end in .txt, "]),
    ("pattern_without_an_ending", files_in("d", "b.txt", "a.txt"), ['data.train="d/*"'], ['patterns are not expanded; list the files: ["d/a.txt", "d/b.txt"]']),
    ("pattern_of_training_files", None, ['data.train="*.bin"'], ["*.bin does not exist, and patterns are not expanded; list the files: ", '["tokens.bin"]']),
    ("model_is_a_run", model_below("run/model"), ["model.path=run"], ["--set model.path=run: run is the folder of a run: name its model, run/model"]),
    ("model_is_an_adapter", adapter_at("adapter"), ["model.path=adapter"], ["model.path=adapter", "is an adapter", '[lora] adapter = "adapter"']),
    ("model_is_a_run_of_an_adapter", adapter_at("run/adapter"), ["model.path=run"], ["model.path=run", '[lora] adapter = "run/adapter"']),
    ("adapter_is_a_run", adapter_at("run/adapter"), ["lora.adapter=run"], ["--set lora.adapter=run: run is the folder of a run: name its adapter, run/adapter"]),
    ("model_is_a_broken_gguf_file", gguf_at("a.gguf"), ["model.path=a.gguf"], ["a.gguf", "version 0; versions 2 and 3 are read"]),
    ("model_is_a_folder_with_gguf", gguf_at("gguf/a.gguf"), ["model.path=gguf"], ["model.path=gguf", "GGUF", "name the file, gguf/a.gguf"]),
    ("dump_into_nowhere", None, ["metrics.dump_first_step=none/a.safetensors"], ["none is no directory"]),
    ("nul_in_a_path", None, ['data.train=["a\\u0000.bin"]'], ["NUL"]),
    ("wrong_type", None, ["training.seed=ten"], ["--set training.seed=ten", "must be an integer"]),
    ("impossible_value", None, ["optimizer.lr=-1"], ["lr", "between 0 and 1e30"]),
    ("optimizer_as_a_key", None, ["optimizer=adamw"], ["--set optimizer=adamw: ", "--set optimizer.name=adamw"]),
    ("groups_as_a_key", keys('[[optimizer.groups]]\nmatch = "*"\n'), [], ["config.toml:14", "`group`"]),
    ("group_without_a_tensor", keys('[[optimizer.group]]\nmatch = "*.none"\n'), [], ["config.toml:14: [[optimizer.group]]", "*.none", "no trained tensor", '"model.layers.']),
    ("group_of_a_model_with_adapters", keys('[lora]\n[[optimizer.group]]\nmatch = "*.mlp.*"\n'), [], ["config.toml:15: [[optimizer.group]]", '"base_model.model.model.layers.']),
    ("group_behind_another", keys('[[optimizer.group]]\nmatch = "*"\n[[optimizer.group]]\nmatch = "*norm*"\nlr = 0.1\n'), [],
     ["config.toml:16: [[optimizer.group]]: treats no tensor", "config.toml:14, group 1"]),
    ("muon_group_of_vectors", keys('[[optimizer.group]]\nmatch = "*norm*"\noptimizer = "muon"\n'), [], ["config.toml:14: [[optimizer.group]]", "matrix in a block", '"adamw"']),
    ("no_stage", None, ["zero.stage=4"], ["zero.stage=4", "0, 1, 2 or 3"]),
    ("steps_and_epochs", None, ["training.epochs=2", "training.steps=2"], ["--set training.epochs=2: contradicts steps (--set training.steps=2)", "give one of the two"]),
    ("steps_and_epochs_in_the_file", keys("epochs = 2.0\n"), [], ["config.toml:", "epochs", "contradicts steps", "give one of the two"]),
    ("preset_and_path", None, ["model.preset=llama-tiny", "model.path=model"], ["--set model.path=model: contradicts preset (--set model.preset=llama-tiny)"]),
    ("no_training_files", None, ["data.train=[]"], ["--set data.train=[]: must not be empty"]),
    ("unknown_preset", text('[job]\noutput_dir = "out"\n[model]\npreset = "llama-9b"\n[data]\ntrain = "tokens.bin"\n'
                            "[training]\nsteps = 1\nseq_len = 8\n"), [], ["llama-9b", "llama-15m"]),
    ("batch_not_divided", None, ["training.global_batch_size=8"], ["global_batch_size", "3 x 2 = 6", "12"]),
    ("shard_degree", None, ["zero.shard_degree=3"], ["shard_degree", "divide"]),
    ("sequence_beyond_context", None, ["training.seq_len=129"], ["seq_len", "128"]),
    ("adapters_for_nothing", keys('[lora]\ntarget_modules = ["query"]\n'), [], ["config.toml:15", "query", "q_proj"]),
    ("all_linear_and_more", keys('[lora]\ntarget_modules = ["all-linear", "q_proj"]\n'), [], ["config.toml:15", "alone"]),
    ("saves_an_unknown_module", keys('[lora]\nmodules_to_save = ["classifier"]\n'), [], ["config.toml:15", "classifier", "lm_head"]),
    ("adapter_is_a_model", keys('[lora]\nadapter = "model"\n'), [], ["config.toml:15", "model holds a model, no adapter", "adapter_config.json"]),
    ("adapter_is_a_run_of_a_model", model_below("run/model"), ["lora.adapter=run"], ["--set lora.adapter=run: run holds a model, no adapter"]),
    ("adapter_is_a_folder", files_in("d"), ["lora.adapter=d"], ["--set lora.adapter=d: d has no adapter_config.json"]),
    ("scales_of_eight_bits", keys("[lora]\nquantization = \"int8\"\ndouble_quantization = true\n"), [], ["config.toml:16", 'quantization = "nf4"']),
    ("scales_of_nothing", keys("[lora]\ndouble_quantization = true\n"), [], ["config.toml:15", 'quantization = "nf4"']),
    ("frozen_without_adapters", None, ["zero.frozen=keep"], ["zero.frozen=keep", "[lora]"]),
    ("no_training_file", remove("tokens.bin"), [], ["tokens.bin", "does not exist"]),
    ("no_model", remove("model"), [], ["model", "does not exist"]),
    ("no_model_config", remove("model/config.json"), [], ["config.json"]),
    ("dropout", model_field("attention_dropout", 0.1), [],
     ['[model] path = "model": model/config.json: attention_dropout = 0.1', "not done in training", "0.0", "Generation and export have none"]),
    ("dropout_beside_a_preset", text('[job]\noutput_dir = "out"\n[model]\npreset = "llama-tiny"\nattention_dropout = 0.5\n[data]\ntrain = "tokens.bin"\n'
                                     "[training]\nsteps = 1\nseq_len = 8\n"), [], ["config.toml:5", "attention_dropout = 0.5", "not done in training"]),
    ("family_that_is_not_known", model_field("model_type", "mamba"), ["training.seq_len=129"],
     ['model/config.json: model_type "mamba" is not supported', '"smollm3"']),
    ("head_beside_a_tied_embedding", other_head, [], ["lm_head.weight differs from model.embed_tokens.weight", "tie_word_embeddings"]),
    ("no_weights", remove("model/model.safetensors"), [], ["safetensors"]),
    ("no_tokenizer", None, ["data.train=a.txt"], ["a.txt"]),
    ("tokenizer_json_alone", tokenizer_json_alone, ["data.train=a.txt"], ["tokenizer.json", '"model" is missing']),
    ("text_in_latin1", trains_on("a.txt", ("God said\n für alle" * 99).encode("latin1")), [], ["a.txt: byte 11 (0xFC) is not UTF-8", "iconv"]),
    ("text_in_utf16", trains_on("a.txt", ("God said" * 99).encode("utf-16-le")), [], ["a.txt: byte 1 is zero", "UTF-16"]),
    ("unknown_template", trains_on("a.jsonl", answer('"content": "b"')), ["data.chat_template=zephir"], ["--set data.chat_template=zephir: ", "the nearest is zephyr; known are "]),
    ("no_template", trains_on("a.jsonl", answer('"content": "b"')), ["data.chat_template="], ["--set data.chat_template=: ", "has no chat template"]),
    ("template_that_is_no_file", trains_on("a.jsonl", answer('"content": "b"')), ["data.chat_template=none.jinja"], ["--set data.chat_template=none.jinja: ", "no file with one"]),
    ("template_beside_its_tokenizer", trains_on("a.jsonl", answer('"content": "b"')), ["data.chat_template=llama-3"], ["--set data.chat_template=llama-3: ", "<|eot_id|>"]),
    ("broken_tokenizer", trains_on("a.txt", b"God said " * 999, keep=lambda model: model[:1000]), [], ["config.toml:", '[data] tokenizer = "tokenizer/tokenizer.model": tokenizer/tokenizer.model: ']),
    ("hostile_tokenizer", trains_on("a.txt", b"God said " * 999, "normalisers/nfkc.model", fill_character_map), [],
     ["tokenizer.model: the normaliser's character map", "damaged"]),
    ("tool_calls", trains_on("a.jsonl", answer('"content": "b", "tool_calls": [{"id": "x"}]')), [], ["a.jsonl:1: message 2: \"tool_calls\" would be lost: the chat template"]),
    ("half_a_weight", trains_on("a.jsonl", b"\n" + answer('"content": "b", "weight": 0.5')), [], ["a.jsonl:2: message 2: \"weight\" must be 0 or 1"]),
    ("untrained_but_all", trains_on("a.jsonl", answer('"content": "b", "weight": 0')), ["data.train_on=all"], ["a.jsonl:1: message 2", "data.train_on"]),
    ("torn_line", trains_on("a.jsonl", b'{"text": "a"}\n{"text": "b\n'), [], ["a.jsonl:2: not valid JSON: parse error at byte "]),
    ("broken_row_of_a_list", trains_on("a.json", b'[{"instruction": "a", "output": "b"},\n {"instruction": "c"}]'), [], ["a.json: row 2: no known kind"]),
    ("no_list", trains_on("a.json", b'{"text": "a"}\n'), [], ["a.json: does not begin with [", ".jsonl"]),
    ("unknown_kind_of_file", None, ["data.train=a.csv"], ["a.csv", ".jsonl"]),
    ("token_beyond_vocabulary", token_beyond_vocabulary, [], ["tokens.bin", "60000", "512"]),
    ("half_a_token", odd_bytes, [], ["tokens.bin"]),
    ("data_shorter_than_a_window", no_window, [], ["tokens.bin"]),
    ("truncated_weights", truncated_data, [], ["model.safetensors"]),
    ("header_longer_than_file", header_longer_than_file, [], ["model.safetensors"]),
    ("header_is_no_json", header_is_no_json, [], ["model.safetensors"]),
    ("overlapping_tensors", overlapping_tensors, [], ["model.safetensors"]),
    ("offsets_beyond_file", offsets_beyond_file, [], ["model.safetensors"]),
    ("missing_weight", missing_weight, [], ["model.norm.weight"]),
    ("other_shape", other_shape, [], ["lm_head.weight", "64", "512"]),
    ("output_holds_a_run", held_output, [], ["out", "--overwrite"]),
    ("several_mistakes", held_output, ["data.train=none.bin", "zero.shard_degree=3"], ["shard_degree", "none.bin does not exist", "--overwrite"]),
    ("output_cannot_be_made", None, ["job.output_dir=tokens.bin/out"], ["tokens.bin/out", "tokens.bin is not a directory"]),
]


def tree(folder):
    """Every file below a folder with its size and time of change."""
    found = {}
    for base, folders, names in os.walk(folder):
        for name in folders + names:
            status = os.stat(os.path.join(base, name))
            found[os.path.relpath(os.path.join(base, name), folder)] = (status.st_size, status.st_mtime_ns) if name in names else None
    return found


def run(program, place, pairs):
    """(exit code or None after the deadline, standard output, standard error without mpirun's own boxes)."""
    command = mpirun(2) + [program, "config.toml"] + [word for pair in pairs for word in ("--set", pair)]
    process = subprocess.Popen(command, cwd=place.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                               env=environment())
    try:
        out, err = process.communicate(timeout=DEADLINE_SECONDS)
    except subprocess.TimeoutExpired:
        process.terminate()  # mpirun ends its ranks
        process.communicate()
        return None, "", ""
    return process.returncode, out, re.sub(r"(?ms)^-{60,}\n.*?^-{60,}\n", "", err)


def faults(program, data, case):
    """What is wrong with the program's answer to a case: nothing, or a sentence each."""
    name, spoil, pairs, pieces = case
    with tempfile.TemporaryDirectory(prefix=f"zero-{name}-") as folder:
        place = Place(folder, data)
        if spoil:
            spoil(place)
        before = tree(folder)
        code, out, err = run(program, place, pairs)
        if code is None:
            return [f"no end within {DEADLINE_SECONDS} s"], ""
        messages = [line for line in err.replace("\n  and: ", " and: ").splitlines() if re.match(r"(\[rank \d+\] )?error: ", line)]
        found = []
        if code != 2:
            found.append(f"exit code {code}, not 2")
        if len(messages) != 1:
            found.append(f"{len(messages)} messages, not 1")
        if any(line.startswith("[rank") for line in messages):
            found.append("a message of another rank than 0")
        found += [f"{piece!r} is not in the message" for piece in pieces if not any(piece in line for line in messages)]
        if tree(folder) != before:
            found.append(f"wrote {sorted(n for n, s in tree(folder).items() if before.get(n, 0) != s)}")
        return found, out + err


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("zero_train")
    parser.add_argument("data")
    parser.add_argument("-k", default="", help="only cases whose name holds this")
    parser.add_argument("-v", action="store_true", help="show every message")
    args = parser.parse_args()
    cases = [case for case in CASES if args.k in case[0]]
    failed = 0
    for case in cases:
        found, said = faults(os.path.abspath(args.zero_train), os.path.abspath(args.data), case)
        failed += bool(found)
        if found or args.v:
            print(f"{case[0]}: {'; '.join(found) or 'ok'}\n    " + said.strip().replace("\n", "\n    "), flush=True)
    print(f"{len(cases)} cases, {failed} failed")
    sys.exit(failed > 0 or not cases)


if __name__ == "__main__":
    main()
