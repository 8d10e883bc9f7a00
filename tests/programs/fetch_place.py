"""A folder in which test_fetch.py runs zero_fetch, and the hub that it asks."""
import os
import random
import subprocess
import time

from fake_hub import Hub, Repository

MODEL = "models/own-er/small"
TOKEN = "hf_secretToken"


def noise(count, seed=1):
    return random.Random(seed).randbytes(count)


FILES = {"config.json": b'{"model_type": "llama"}', "model-00001-of-00002.safetensors": noise(300_000), "model-00002-of-00002.safetensors": noise(200_001, 2),
         "model.safetensors.index.json": b"{}", "tokenizer.json": noise(5000, 3), "tokenizer_config.json": b"{}", "LICENSE": b"", "README.md": b"words",
         "additional_chat_templates/tool use.jinja": b"{{ messages }}"}
OTHERS = {"pytorch_model.bin": noise(4000, 4), "consolidated.safetensors": noise(4000, 5), "onnx/model.onnx": noise(3000, 6), "onnx/config.json": b"{}",
          ".gitattributes": b"*.bin filter=lfs", "model-q8.gguf": noise(2000, 7), "training_args.bin": b"x"}


class Place:
    def __init__(self, args, folder):
        self.bin, self.data, self.program, self.folder = args.bin, args.data, os.path.join(args.bin, "zero_fetch"), folder
        self.hub = Hub({MODEL: Repository({**FILES, **OTHERS})})

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def environment(self, **more):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING")) and not name.lower().endswith("_proxy")}
        kept.update({"HOME": self.path("home"), "HF_ENDPOINT": self.hub.address, "HF_HUB_DOWNLOAD_TIMEOUT": "2", **more})
        return {name: value for name, value in kept.items() if value is not None and name != "XDG_CACHE_HOME"}

    def start(self, *words, **more):
        return subprocess.Popen([self.program, *words], cwd=self.folder, env=self.environment(**more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *words, **more):
        """(exit code, standard output, standard error), in which the token never is."""
        process = self.start(*words, **more)
        out, said = process.communicate(timeout=60)
        assert TOKEN not in out + said, said
        return process.returncode, out, said

    def fetched(self, *words, **more):
        code, out, said = self.run(*words, **more)
        assert code == 0, said
        assert out.count("\n") == 1, out
        return self.path(out.rstrip("\n")), said

    def refused(self, code, parts, *words, **more):
        """It ends with this code and one error, which has these parts."""
        found, out, said = self.run(*words, **more)
        assert found == code and out == "" and said.count("error: ") == 1, (found, out, said)
        for part in parts if isinstance(parts, (list, tuple)) else [parts]:
            assert part in said, (part, said)
        return said


def files_in(folder):
    """{relative path: content} of all files, links followed."""
    found = {}
    for above, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(above, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found


def wait_until(condition, seconds=30):
    end = time.time() + seconds
    while not condition():
        assert time.time() < end, "it does not happen"
        time.sleep(0.02)


def own(folder):
    """The partial files of a folder."""
    inner = os.path.join(folder, ".zero_fetch")
    return sorted(os.listdir(inner)) if os.path.isdir(inner) else []
