"""What a run and an export remove: only what this program wrote, and never what they read. Folders with other people's files are
prepared, every way of writing over them is tried, and afterwards each of those files must be as it was.

usage: test_output_dir.py BIN TESTS_DATA [-k NAME]        exits 1 when something is wrong
"""
import json
import os
import re
import shutil
import stat
import subprocess
import time

from checks import ModelPlace, arguments, environment, mpirun, run_checks

DEADLINE_SECONDS = 120
CONFIG = {
    "job": {"output_dir": "out"},
    "model": {"path": "model"},
    "data": {"train": ["tokens.bin"]},
    "training": {"steps": 2, "seq_len": 24, "local_batch_size": 1, "global_batch_size": 2, "precision": "fp32", "device": "cpu"},
}


class Place(ModelPlace):
    """A folder with a small model, its tokens, a text with a tokenizer, and a configuration."""

    def __init__(self, folder, bin, data):
        super().__init__(folder, bin, data, CONFIG)
        shutil.copy(os.path.join(data, "tinyllama-chat", "tokenizer.model"), self.path("tokenizer.model"))
        self.config({**CONFIG, "model": {"preset": "llama-tiny", "vocab_size": 32000}, "data": {"train": ["t.txt"], "tokenizer": "tokenizer.model"}}, name="text.toml")

    def write(self, name, content="somebody's work\n"):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w") as file:
            file.write(content)

    def tree(self, name="."):
        """Every file and link below a folder with its content."""
        found = {}
        for base, folders, names in os.walk(self.path(name)):
            for entry in names + [f for f in folders if os.path.islink(os.path.join(base, f))]:
                path = os.path.join(base, entry)
                if os.path.islink(path):
                    found[os.path.relpath(path, self.folder)] = os.readlink(path)
                else:
                    with open(path, "rb") as file:
                        found[os.path.relpath(path, self.folder)] = file.read()
        return found

    def start(self, *options, config="config.toml", ranks=1):
        return subprocess.Popen([*(mpirun(ranks) if ranks > 1 else []), self.bin + "/zero_train", config, *options], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                errors="surrogateescape", start_new_session=True, env=environment())

    def end(self, process):
        said, _ = process.communicate(timeout=DEADLINE_SECONDS)
        return process.returncode, said

    def trains(self, *options, **more):
        code, said = self.end(self.start(*options, **more))
        assert code == 0, said
        return said

    def ends_early(self, *options):
        """Killed after the first step."""
        metrics, begin = self.path("out/metrics.jsonl"), time.time_ns()
        process = self.start(*options, "--set", "training.steps=10000000")
        deadline = time.time() + DEADLINE_SECONDS
        while process.poll() is None and time.time() < deadline:
            if os.path.exists(metrics) and os.path.getsize(metrics) > 0 and os.stat(metrics).st_mtime_ns > begin:
                break
            time.sleep(0.05)
        assert process.poll() is None, self.end(process)
        process.kill()
        self.end(process)

    def refuses(self, *options, pieces, **more):
        """One message, exit code 2, nothing touched."""
        before = self.tree()
        code, said = self.end(self.start(*options, **more))
        messages = [line for line in said.splitlines() if re.match(r"(\[rank \d+\] )?error: ", line)]
        assert code == 2 and len(messages) == 1 and all(piece in messages[0] for piece in pieces), (options, code, said)
        now = self.tree()
        assert now == before, (options, said, "files changed: ", [name for name in {**now, **before} if now.get(name) != before.get(name)])

    def export(self, *arguments, refused=None):
        before = self.tree()
        done = subprocess.run([self.bin + "/zero_export", *arguments], cwd=self.folder, capture_output=True, text=True, errors="surrogateescape", timeout=DEADLINE_SECONDS)
        if refused is None:
            assert done.returncode == 0, done.stderr
            return
        assert done.returncode == 2 and refused in done.stderr, (arguments, done.returncode, done.stderr)
        assert self.tree() == before, (arguments, "files changed")


def check_foreign_folders(place):
    """A project of somebody who calls folders and files as runs do."""
    for name, all_flags in (("model/net.py", ((), ("--overwrite",))), ("adapter/notes.txt", (("--overwrite",),)),
                            ("checkpoints/best_of_last_year.pt", (("--overwrite",),)), ("metrics.jsonl", ((),)), ("config.toml", (("--overwrite",),))):
        place.write("out/" + name)
        for flags in all_flags:
            place.refuses(*flags, pieces=["out", name.split("/")[0], "no mark"])
        shutil.rmtree(place.path("out"))
    place.write("elsewhere/net.py")
    os.makedirs(place.path("out"))
    os.symlink("../elsewhere", place.path("out/model"))
    place.refuses("--overwrite", pieces=["model", "is a link"])
    # Names that no run uses are no reason to refuse, but a full folder is probably a mistake.
    for name in ("a", "b", "c"):
        place.write("few/" + name)
        place.write("full/" + name)
    place.write("full/d/e")
    assert "that no run made" not in place.trains("--set", "job.output_dir=few")
    said = place.trains("--set", "job.output_dir=full")
    assert 'job.output_dir = "full" holds 4 files and folders that no run made, such as a: they stay' in said, said
    assert "that no run made" not in place.trains("--set", "job.output_dir=full", "--overwrite") and place.tree("full")["full/d/e"], said


def check_links(place):
    """What a link leads to is nobody's to empty."""
    place.trains("--set", "checkpoint.interval=1")
    for name in ("model", "checkpoints"):
        shutil.move(place.path("out", name), place.path("archived-" + name))
        os.symlink("../archived-" + name, place.path("out", name))
        place.refuses("--overwrite", pieces=[name, "is a link to ../archived-" + name])
        os.remove(place.path("out", name))
        os.makedirs(place.path("out", name))
    place.trains("--overwrite")


def check_files_beside_ours(place):
    """They stay when the run that they were put beside is overwritten, which takes all that is the run's."""
    place.trains("--set", "checkpoint.interval=1")
    guests = ["out/model/net.py", "out/checkpoints/best_of_last_year.pt", "out/notes.txt", "out/model/sub/model.safetensors"]
    place.write("out/checkpoints/step-00000001/readme")
    place.write("out/checkpoints/step-00000002/readme")
    for guest in guests:
        place.write(guest)
    os.symlink(place.path("tokens.bin"), place.path("out/model/tokens"))
    place.write("out/model/config.json.tmp-0123456789abcdef", "left by a process that was killed")
    before = {**place.tree("model"), **{guest: place.tree()[guest] for guest in guests}}
    place.trains("--overwrite", "--set", "training.steps=1", "--set", "checkpoint.interval=1")
    now = place.tree()
    assert all(now[name] == content for name, content in before.items())
    assert os.path.islink(place.path("out/model/tokens")) and not os.path.exists(place.path("out/model/config.json.tmp-0123456789abcdef"))
    assert sorted(os.listdir(place.path("out/checkpoints"))) == ["best_of_last_year.pt", "step-00000001", "step-00000001.kept", "step-00000002.kept"]
    assert os.listdir(place.path("out/checkpoints/step-00000001.kept")) == ["readme"]
    assert os.path.exists(place.path("out/checkpoints/step-00000001/manifest.json"))
    assert len(open(place.path("out/metrics.jsonl")).readlines()) == 1
    # A run that ends before its result leaves the folder to the next one.
    place.ends_early("--overwrite")
    place.trains("--overwrite")


def check_what_is_read(place):
    """Whatever way leads from a run's input into what --overwrite removes."""
    place.trains()
    place.trains("--set", "lora.r=2", "--set", "job.output_dir=tuned")
    place.trains("--set", "lora.r=2", "--overwrite", "--set", "job.output_dir=tuned")
    place.refuses("--overwrite", "--set", "model.path=out/model", pieces=["out", "model.path", "name another directory"])
    os.symlink("out", place.path("link"))
    place.refuses("--overwrite", "--set", "model.path=link/model", pieces=["model.path"])
    place.refuses("--overwrite", "--set", "model.path=out/model", "--set", "job.output_dir=link/../out", pieces=["model.path"])
    os.makedirs(place.path("linked"))
    for name in os.listdir(place.path("out/model")):
        os.symlink("../out/model/" + name, place.path("linked", name))
    place.refuses("--overwrite", "--set", "model.path=linked", pieces=["model.path", "linked/"])
    place.refuses("--overwrite", "--set", "lora.adapter=tuned/adapter", "--set", "job.output_dir=tuned", pieces=["lora.adapter"])
    shutil.copy(place.path("tokens.bin"), place.path("out/model/t.bin"))
    shutil.copy(place.path("tokens.bin"), place.path("out/checkpoints.bin"))
    place.refuses("--overwrite", "--set", 'data.train=["out/model/t.bin"]', pieces=["data.train", "out/model/t.bin"])
    place.refuses("--overwrite", "--set", 'data.validation=["out/model/t.bin"]', "--set", "training.validation_interval=1", pieces=["data.validation"])
    place.write("t.txt")
    shutil.copy(place.path("tokenizer.model"), place.path("out/model"))
    place.refuses("--overwrite", "--set", "data.tokenizer=out/model/tokenizer.model", config="text.toml", pieces=["data.tokenizer", "name another directory"])
    place.refuses("--overwrite", config="out/config.toml", pieces=["the configuration", "out/config.toml"])
    place.trains("--overwrite", "--set", 'data.train=["out/checkpoints.bin"]')
    assert place.tree("out")["out/checkpoints.bin"] == place.tree()["tokens.bin"]
    place.refuses("--set", "job.output_dir=model", pieces=["model", "config.json", "folder of a model"])
    dump = ("--set", "metrics.dump_first_step=", "--set", "job.output_dir=dumped")
    for name, words in (("model/model.safetensors", "model.path"), ("tokens.bin", "data.train"), ("config.toml", "configuration"), ("out/notes.txt", "holds no tensors")):
        place.write("out/notes.txt")
        place.refuses(dump[0], dump[1] + name, *dump[2:], pieces=["metrics.dump_first_step", words])
    place.trains(dump[0], dump[1] + "dump.safetensors", *dump[2:])
    place.trains(dump[0], dump[1] + "dump.safetensors", *dump[2:], "--overwrite")
    place.trains("--set", "model.path=out/model", "--set", "job.output_dir=out/next")   # beside what is read, not over it


def check_run_that_is_resumed_by_its_own_configuration(place):
    """Before its first step, too. A step that was trained is not removed."""
    place.ends_early()
    place.refuses("--resume", "--set", "training.steps=2", config="out/config.toml", pieces=["no checkpoint to go on from", "--overwrite"])
    open(place.path("out/metrics.jsonl"), "w").close()
    said = place.trains("--resume", "--set", "training.steps=2", config="out/config.toml")
    assert "has no checkpoint yet" in said, said


def check_configuration_of_the_users_own(place):
    """A config.toml that no run wrote is not replaced, by --resume neither."""
    os.makedirs(place.path("out"))
    shutil.copy(place.path("config.toml"), place.path("out/config.toml"))
    before = place.tree("out")
    place.refuses("--resume", config="out/config.toml", pieces=["holds config.toml", "no mark"])
    place.refuses(config="out/config.toml", pieces=["holds config.toml", "no mark"])
    assert place.tree("out") == before


def check_directory_of_any_bytes(place):
    """A checkpoint knows where its run was started, whatever bytes the name has."""
    folder = os.fsencode(place.folder) + b"/w\xff%41"
    os.makedirs(folder)
    for name in ("model", "tokens.bin", "config.toml"):
        os.symlink(os.fsencode(place.path(name)), folder + b"/" + name.encode())
    home, place.folder = place.folder, os.fsdecode(folder)
    place.trains("--set", "checkpoint.interval=1", "--set", "lora.r=2", "--set", "checkpoint.keep=1")
    place.folder = home
    place.export(place.path(os.fsdecode(folder), "out/checkpoints/step-00000002"), "exported")
    assert os.path.exists(place.path("exported/adapter_model.safetensors"))


def check_two_runs_at_once(place):
    """One that takes long to begin, in the directory of one that comes and ends meanwhile."""
    words = "in the beginning was the word and the word was with the data "
    place.write("t.txt", "\n".join(words + str(n) for n in range(400000)))
    first = place.start(config="text.toml")
    deadline = time.time() + DEADLINE_SECONDS
    while not os.path.isdir(place.path("out/token_cache")) and first.poll() is None and time.time() < deadline:
        time.sleep(0.005)
    assert first.poll() is None and not os.path.exists(place.path("out/metrics.jsonl")), "it was to be tokenising"
    refused = 0
    for flags in (("--overwrite",), (), ("--resume",)):
        second = place.start(*flags) if first.poll() is None else None
        code, said = place.end(second) if second else (2, "")
        if first.poll() is None:   # else it may have ended before the second one looked
            assert code == 2 and "is in use by another run" in said, said
            refused += 1
    assert refused > 0, "the first run was too short"
    code, said = place.end(first)
    assert code == 0, said
    result = place.tree("out")
    place.refuses(config="text.toml", pieces=["holds a run already"])
    place.refuses(pieces=["holds a run already"])
    assert place.tree("out") == result


def check_refused_runs_leave_nothing(place):
    place.write("empty.bin", "")
    place.refuses("--set", 'data.train=["empty.bin"]', "--set", "job.output_dir=some/where/new", pieces=["is empty"])
    assert not os.path.exists(place.path("some"))
    place.refuses("--set", "job.output_dir=/proc/zero/out", pieces=["job.output_dir", "/proc belongs to the kernel"])
    if os.getuid() != 0:
        os.makedirs(place.path("locked"))
        os.chmod(place.path("locked"), 0o555)
        place.refuses("--set", "job.output_dir=locked", pieces=["cannot be written to"])


def check_token_cache(place):
    """It lies in the run's directory, is as private as the text, is kept, and damage is found."""
    place.write("t.txt", "".join(f"line {n} of a text\n" for n in range(3000)))
    os.chmod(place.path("t.txt"), 0o600)
    options = ("--set", "job.output_dir=runs/one")
    said = place.trains(*options, config="text.toml", ranks=2)
    assert "tokenised t.txt" in said and os.listdir(place.path("runs")) == ["one"], os.listdir(place.path("runs"))
    cache, = os.listdir(place.path("runs/one/token_cache"))
    cache = place.path("runs/one/token_cache", cache)
    assert stat.S_IMODE(os.stat(cache).st_mode) == 0o600
    said = place.trains(*options, "--overwrite", config="text.toml", ranks=2)
    assert "tokenised t.txt" not in said, said
    with open(cache, "r+b") as file:
        file.seek(5000)
        byte = file.read(1)
        file.seek(5000)
        file.write(bytes([byte[0] ^ 1]))
    losses = [json.loads(line)["loss"] for line in open(place.path("runs/one/metrics.jsonl"))]
    said = place.trains(*options, "--overwrite", config="text.toml", ranks=2)
    assert "is damaged" in said and "tokenised t.txt" in said, said
    assert [json.loads(line)["loss"] for line in open(place.path("runs/one/metrics.jsonl"))] == losses


def check_data_cut_while_training(place):
    """A file of ids that shrinks ends the run with a message and not by a signal; one that is only touched ends nothing."""
    for spoil in (lambda path: os.truncate(path, 0),):
        shutil.copy(place.path("tokens.bin"), place.path("t.bin"))
        process = place.start("--set", 'data.train=["t.bin"]', "--set", "training.steps=10000000", "--overwrite", ranks=2)
        deadline = time.time() + DEADLINE_SECONDS
        while process.poll() is None and time.time() < deadline:
            if os.path.exists(place.path("out/metrics.jsonl")) and os.path.getsize(place.path("out/metrics.jsonl")) > 0:
                break
            time.sleep(0.05)
        spoil(place.path("t.bin"))
        code, said = place.end(process)
        assert code == 1 and "t.bin: " in said and "Bus error" not in said, (code, said)


def check_export_onto_its_source(place):
    place.trains()
    shutil.copytree(place.path("model"), place.path("foreign"))
    os.symlink("model", place.path("link"))
    os.makedirs(place.path("linked"))
    for name in os.listdir(place.path("model")):
        os.symlink("../model/" + name, place.path("linked", name))
    os.link(place.path("model/model.safetensors"), place.path("hard.gguf"))
    for out in ("model", "link", "model/../model", "."):
        place.export("model", out, "--overwrite", refused="an input of the export")
    place.export("linked", "model", "--overwrite", refused="an input of the export")
    place.export("model", "foreign", "--overwrite", refused="no mark")
    place.export("out/model", "out/model", "--overwrite", refused="an input of the export")
    for out in ("model/model.safetensors", "link/config.json", "linked/model.safetensors", "hard.gguf"):
        place.export("model", out, "--gguf", "F16", "--overwrite", "--tokenizer", "tokenizer.model", refused="an input of the export")
    place.write("notes.txt")
    place.export("model", "notes.txt", "--gguf", "F16", "--overwrite", "--tokenizer", "tokenizer.model", refused="is no GGUF file")
    place.export("model", "exported")
    place.write("exported/notes.txt")
    place.export("model", "exported", "--overwrite")
    assert os.path.exists(place.path("exported/notes.txt"))


def check_export_of_another_kind(place):
    """One folder, one result; and one that fails leaves no folder."""
    place.trains()
    place.trains("--set", "lora.r=2", "--set", "model.path=out/model", "--set", "job.output_dir=tuned", "--set", "checkpoint.interval=1")
    states = "tuned/checkpoints/step-00000002"
    place.export(states, "out/model", "--overwrite", refused="an input of the export")
    place.export("out", "tuned/adapter", "--adapter", "tuned", "--overwrite", refused="an input of the export")
    place.export("out", states, "--adapter", "tuned", "--overwrite", refused="no mark")
    place.export("out", "exported", "--overwrite", refused=None)
    place.export(states, "exported", "--overwrite")
    assert sorted(n for n in os.listdir(place.path("exported")) if "config" in n or "safetensors" in n) == ["adapter_config.json", "adapter_model.safetensors"]
    place.export("out", "exported", "--overwrite")
    assert not [n for n in os.listdir(place.path("exported")) if n.startswith("adapter")]
    place.export("out", "tuned", "--overwrite", refused="no mark")
    shutil.rmtree(place.path("exported"))
    os.makedirs(place.path("no-tokenizer"))
    place.write("no-tokenizer/tokenizer.model", "none")
    done = subprocess.run([place.bin + "/zero_export", "out", "exported", "--tokenizer", "no-tokenizer"], cwd=place.folder, capture_output=True, text=True)
    assert done.returncode != 0 and not os.path.exists(place.path("exported")), done.stderr


def main():
    args = arguments(__doc__)
    run_checks(args, globals(), lambda check, folder: check(Place(folder, args.bin, args.data)))


if __name__ == "__main__":
    main()
