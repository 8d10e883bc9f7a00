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

DEADLINE_SECONDS = 60
CONFIG = {
    "job": {"output_dir": "out"},
    "model": {"path": "model"},
    "data": {"train": ["tokens.bin"]},
    "training": {"steps": 2, "seq_len": 24, "local_batch_size": 3, "global_batch_size": 12, "precision": "fp32", "device": "cpu"},
}


class Place:
    """A folder of one case: a small model, its tokens and a good configuration, for the case to spoil."""

    def __init__(self, folder, data):
        self.folder = folder
        shutil.copytree(os.path.join(data, "tiny", "model"), self.path("model"))
        shutil.copy(os.path.join(data, "tiny", "tokens.bin"), self.path("tokens.bin"))
        for folder, _, names in os.walk(self.folder):  # the originals may be read-only
            for name in names:
                os.chmod(os.path.join(folder, name), 0o644)
        self.config(CONFIG)

    def path(self, name):
        return os.path.join(self.folder, name)

    def config(self, sections, extra=""):
        with open(self.path("config.toml"), "w") as file:
            for section, keys in sections.items():
                file.write(f"[{section}]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in keys.items()))
            file.write(extra)

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
    ("wrong_type", None, ["training.seed=ten"], ["--set training.seed=ten", "must be an integer"]),
    ("impossible_value", None, ["optimizer.lr=-1"], ["lr", "at least 0"]),
    ("no_stage", None, ["zero.stage=4"], ["zero.stage=4", "0, 1, 2 or 3"]),
    ("steps_and_epochs", None, ["training.epochs=2"], ["epochs", "steps", "config.toml:"]),
    ("preset_and_path", None, ["model.preset=llama-tiny"], ["preset", "path"]),
    ("unknown_preset", text('[job]\noutput_dir = "out"\n[model]\npreset = "llama-9b"\n[data]\ntrain = "tokens.bin"\n'
                            "[training]\nsteps = 1\nseq_len = 8\n"), [], ["llama-9b", "llama-15m"]),
    ("batch_not_divided", None, ["training.global_batch_size=8"], ["global_batch_size", "3 x 2 = 6", "12"]),
    ("shard_degree", None, ["zero.shard_degree=3"], ["shard_degree", "divide"]),
    ("sequence_beyond_context", None, ["training.seq_len=129"], ["seq_len", "128"]),
    ("adapters_for_nothing", keys('[lora]\ntarget_modules = ["query"]\n'), [], ["config.toml:15", "query", "q_proj"]),
    ("all_linear_and_more", keys('[lora]\ntarget_modules = ["all-linear", "q_proj"]\n'), [], ["config.toml:15", "alone"]),
    ("saves_an_unknown_module", keys('[lora]\nmodules_to_save = ["classifier"]\n'), [], ["config.toml:15", "classifier", "lm_head"]),
    ("adapter_is_a_model", keys('[lora]\nadapter = "model"\n'), [], ["model", "adapter_config.json"]),
    ("scales_of_nothing", keys("[lora]\ndouble_quantization = true\n"), [], ["config.toml:15", 'quantization = "nf4"']),
    ("frozen_without_adapters", None, ["zero.frozen=keep"], ["zero.frozen=keep", "[lora]"]),
    ("no_training_file", remove("tokens.bin"), [], ["tokens.bin", "does not exist"]),
    ("no_model", remove("model"), [], ["model", "does not exist"]),
    ("no_model_config", remove("model/config.json"), [], ["config.json"]),
    ("no_weights", remove("model/model.safetensors"), [], ["safetensors"]),
    ("no_tokenizer", None, ["data.train=a.txt"], ["a.txt"]),
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
    command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", "2"] + (["--allow-run-as-root"] if os.getuid() == 0 else [])
    command += [program, "config.toml"] + [word for pair in pairs for word in ("--set", pair)]
    process = subprocess.Popen(command, cwd=place.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                               env=dict(os.environ, OMP_NUM_THREADS="1"))
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
        messages = [line for line in err.splitlines() if re.match(r"(\[rank \d+\] )?error: ", line)]
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
