"""Runs every program that reads an adapter or a model with files that hold more or less than their configurations say: nothing may be
lost or added in silence, and what one program refuses all refuse, with exit code 2, one message and nothing written.

usage: test_adapters.py BIN TESTS_DATA [-k NAME]        exits 1 when something is wrong
"""
import json
import os
import shutil
import signal
import struct
import subprocess
import time

from checks import arguments, environment, run_checks

PEFT = "base_model.model."


def read(path):
    """{name: (type, shape, bytes)}"""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    return {name: (t["dtype"], t["shape"], data[slice(*t["data_offsets"])]) for name, t in header.items() if name != "__metadata__"}


def write(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def scaled(tensor, factor):
    dtype, shape, content = tensor
    values = struct.unpack(f"<{len(content) // 4}f", content)
    return dtype, shape, struct.pack(f"<{len(values)}f", *(factor * value for value in values))


class Place:
    """A folder with the model and the adapter of a golden case, which may be changed, and a configuration that trains from them."""

    def __init__(self, folder, bin, data):
        self.folder, self.bin, self.data = folder, bin, data
        for name in ("model", "adapter"):
            shutil.copytree(os.path.join(data, "tiny-lora", name), self.path(name), copy_function=shutil.copyfile)
        shutil.copy(os.path.join(data, "tiny-lora/tokens.bin"), self.path("tokens.bin"))
        with open(self.path("tokens.bin"), "rb") as file, open(self.path("ids.bin"), "wb") as out:
            out.write(file.read(48))
        self.base, self.pairs = read(self.path("model/model.safetensors")), read(self.path("adapter/adapter_model.safetensors"))
        with open(self.path("c.toml"), "w") as file:
            file.write('[job]\noutput_dir = "out"\n[model]\npath = "model"\n[data]\ntrain = ["tokens.bin"]\n[training]\nsteps = 2\nseq_len = 16\nprecision = "fp32"\n'
                       'device = "cpu"\n[optimizer]\nlr = 0.0\nweight_decay = 0.0\n[checkpoint]\ninterval = 1\n')

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, program, *options, code=0):
        command = [os.path.join(self.bin, program), *options]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120, env=environment())
        assert done.returncode == code, (program, options, done.returncode, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def train(self, *options, adapter="adapter", code=0):
        return self.run("zero_train", "c.toml", *(["--set", f"lora.adapter={adapter}"] if adapter else []), *options, code=code)

    def refused(self, program, *options, piece):
        before = sorted(os.listdir(self.folder))
        said = self.run(program, *options, code=2)
        assert said.count("error: ") == 1 and piece in said, (program, options, said)
        assert sorted(os.listdir(self.folder)) == before, (program, options, os.listdir(self.folder))

    def refused_everywhere(self, piece):
        self.refused("zero_train", "c.toml", "--set", "lora.adapter=adapter", piece=piece)
        self.refused("zero_train", "c.toml", "--set", "lora.adapter=adapter", "--dry-run", piece=piece)
        self.refused("zero_generate", "model", "--adapter", "adapter", "--ids", "ids.bin", "--logits", "l.safetensors", piece=piece)
        self.refused("zero_export", "model", "merged", "--adapter", "adapter", piece=piece)
        self.refused("zero_export", "model", "a.gguf", "--gguf-adapter", "adapter", piece=piece)

    def write_adapter(self, tensors):
        write(self.path("adapter/adapter_model.safetensors"), tensors)

    def logits(self, *model):
        self.run("zero_generate", *model, "--ids", "ids.bin", "--logits", "l.safetensors")
        return read(self.path("l.safetensors"))["logits"]


def check_tensors_beside(place):
    names = ["model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"]
    beside = {PEFT + name: scaled(place.base[name], 1.5) for name in names}
    plain = place.logits("model", "--adapter", "adapter")
    place.write_adapter(place.pairs | beside)
    logits = place.logits("model", "--adapter", "adapter")
    assert logits != plain
    place.run("zero_export", "model", "merged", "--adapter", "adapter")
    merged = read(place.path("merged/model.safetensors"))
    assert all(merged[name] == beside[PEFT + name] for name in names)
    assert place.logits("merged") == logits
    place.refused("zero_export", "model", "a.gguf", "--gguf-adapter", "adapter", piece="whole tensor")
    place.train()
    assert read(place.path("out/adapter/adapter_model.safetensors")) == place.pairs | beside
    assert place.logits("model", "--adapter", "out/adapter") == logits
    place.run("zero_export", "out/checkpoints", "again")
    assert read(place.path("again/adapter_model.safetensors")) == place.pairs | beside
    # the run goes on, and is exported, with the tensors that it began with alone
    place.write_adapter(place.pairs | {name: scaled(tensor, 2) for name, tensor in beside.items()})
    said = place.train("--resume", "--set", "training.steps=4", code=2)
    assert "lora.adapter" in said and "--accept-change lora.adapter" in said, said
    place.refused("zero_export", "out/checkpoints", "once-more", piece="has changed since the run began")
    place.write_adapter(place.pairs | beside)
    assert "resumed after step 2" in place.train("--resume", "--set", "training.steps=4")


def check_whole_projections(place):
    """They are merged, but no run trains over them."""
    name = "model.layers.0.mlp.up_proj.weight"
    place.write_adapter(place.pairs | {PEFT + name: scaled(place.base[name], 2)})
    place.run("zero_export", "model", "merged", "--adapter", "adapter")
    assert read(place.path("merged/model.safetensors"))[name] == scaled(place.base[name], 2)
    assert "is a whole projection" in place.train(code=2)


def check_what_is_missing(place):
    place.write_adapter({})
    place.refused_everywhere("the file holds no tensor")
    place.write_adapter({name: tensor for name, tensor in place.pairs.items() if "layers.1" not in name})
    place.refused_everywhere('layers.1.self_attn.q_proj.lora_A.weight" and 3 more are missing')
    with open(place.path("adapter/adapter_config.json")) as file:
        config = json.load(file)
    with open(place.path("adapter/adapter_config.json"), "w") as file:
        json.dump(config | {"modules_to_save": ["lm_head"]}, file)
    place.write_adapter(place.pairs)
    place.refused_everywhere('"base_model.model.lm_head.weight" is missing')
    for promise, piece in (({"modules_to_save": ["score"]}, 'names "score", the end of no module'), ({"target_modules": config["target_modules"] + ["embed_tokens"]}, "names model.embed_tokens: only")):
        with open(place.path("adapter/adapter_config.json"), "w") as file:
            json.dump(config | promise, file)
        place.refused_everywhere(piece)


def check_what_is_not_promised(place):
    one = {name.replace("q_proj", "o_proj"): tensor for name, tensor in place.pairs.items() if "layers.0.self_attn.q_proj" in name}
    place.write_adapter(place.pairs | one)
    place.refused_everywhere('"target_modules"')


def check_run_that_was_stopped(place):
    """Its newest checkpoint stands for the model with the adapter, as zero_export would write it."""
    place.train("--set", "training.steps=4", "--set", "optimizer.lr=0.1", "--set", "checkpoint.keep=2")
    whole = place.logits("out")
    shutil.rmtree(place.path("out/adapter"))
    assert place.logits("out") == whole and place.logits("out/checkpoints/step-00000004") == whole
    assert place.logits("out/checkpoints/step-00000003") != whole
    said = place.run("zero_generate", "out", "--ids", "ids.bin", "--logits", "l.safetensors")
    assert "step-00000004: the adapter of this checkpoint over model, the model that it was trained on" in said.replace(place.folder + "/", ""), said
    assert "loss" in place.run("zero_evaluate", "out", "tokens.bin", "--seq-len", "16")
    place.run("zero_export", "out/checkpoints", "exported")
    assert place.logits("model", "--adapter", "exported") == whole
    place.run("zero_export", "out", "merged")  # as of a finished run
    assert "model.safetensors" in os.listdir(place.path("merged")) and place.logits("merged") == whole
    place.run("zero_export", "out", "merged.gguf", "--gguf", "F32")
    # Other weights at the base's place are another base.
    shutil.copytree(place.path("model"), place.path("kept"))
    tensors = read(place.path("model/model.safetensors"))
    write(place.path("model/model.safetensors"), {**tensors, "model.norm.weight": scaled(tensors["model.norm.weight"], 2.0)})
    place.refused("zero_generate", "out", "--ids", "ids.bin", "--logits", "l.safetensors", piece="began with other weights than those of")
    shutil.rmtree(place.path("model"))
    os.rename(place.path("kept"), place.path("model"))
    os.rename(place.path("model"), place.path("moved"))
    place.refused("zero_generate", "out", "--ids", "ids.bin", "--logits", "l.safetensors", piece="name it by --base")
    assert place.logits("out", "--base", "moved") == whole
    assert not [name for name in os.listdir(os.environ.get("TMPDIR", "/tmp")) if name.startswith("zero-adapter-")]


def check_killed_while_it_generates(place):
    """The folder of the checkpoint's adapter goes with the process, however it ends."""
    with open(place.path("few.bin"), "wb") as file:
        file.write(bytes(i % 97 if i % 2 == 0 else 0 for i in range(400)))
    place.train("--set", f"model.path={os.path.join(place.data, 'preferences', 'model')}", "--set", 'data.train=["few.bin"]', "--set", "lora.r=4", adapter="")
    shutil.rmtree(place.path("out/adapter"))
    os.mkdir(place.path("tmp"))
    for end in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGPIPE):  # while it waits for a question
        process = subprocess.Popen([os.path.join(place.bin, "zero_generate"), "out", "--chat"], cwd=place.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, env=environment(TMPDIR=place.path("tmp")))
        wait_until(lambda: any(name.startswith("zero-adapter-") for name in os.listdir(place.path("tmp"))), process)
        process.send_signal(end)
        process.wait(timeout=60)
        wait_until(lambda: not any(name.startswith("zero-adapter-") for name in os.listdir(place.path("tmp"))))
        process.stdin.close()


def wait_until(happens, process=None):
    for _ in range(600):
        if happens():
            return
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.05)
    assert False, "waited for half a minute"


def check_unused_tensors(place):
    def note(*command):
        said = place.run(*command)
        assert said.count("note: ") == 1 and "holds 1 tensor that this model does not use, the first is " in said, said

    programs = [("zero_generate", "model", "--ids", "ids.bin", "--logits", "l.safetensors"), ("zero_export", "model", "copy"), ("zero_export", "model", "a.gguf", "--gguf", "F32"),
                ("zero_export", "model", "b.gguf", "--gguf-adapter", "adapter"), ("zero_train", "c.toml", "--dry-run"), ("zero_train", "c.toml")]
    write(place.path("model/model.safetensors"), place.base | {"model.layers.0.self_attn.q_proj.bias": place.base["model.norm.weight"]})
    for command in programs:
        place.refused(*command, piece="--allow-unused")
        note(*command, "--allow-unused")
    assert "resumed after step 2" in place.train("--resume", "--set", "training.steps=3", "--allow-unused", adapter="")
    for made in ("copy", "a.gguf", "b.gguf", "out"):
        shutil.rmtree(place.path(made)) if os.path.isdir(place.path(made)) else os.remove(place.path(made))
    write(place.path("model/model.safetensors"), place.base | {"v_head.weight": place.base["model.norm.weight"]})
    for command in programs:
        note(*command)


if __name__ == "__main__":
    args = arguments(__doc__)
    run_checks(args, globals(), lambda check, folder: check(Place(folder, args.bin, args.data)))
