"""What a run has written so far; for scripts/keep_training."""
import glob
import json
import os
import re
import shutil
import tempfile
import tomllib


class Run:
    """What lies in job.output_dir."""

    def __init__(self, folder, steps=None):
        """`steps`: that are asked for, where it is known."""
        self.folder = folder
        self.steps = steps if isinstance(steps, int) else 0
        self.disowned = set()

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def mark(self):
        """Another one after each start that came to its first step; None: there is no run to go on with."""
        try:
            status = os.stat(self.path("config.toml"))
            return status.st_ino, status.st_mtime_ns
        except OSError:
            return None

    def checkpoint(self):
        """Step of the newest complete checkpoint, 0 without."""
        folders = [name for name in os.listdir(self.path("checkpoints")) if re.fullmatch(r"step-\d{8,}", name)] if os.path.isdir(self.path("checkpoints")) else []
        return max((int(name[5:]) for name in folders if os.path.exists(self.path("checkpoints", name, "manifest.json"))), default=0)

    def step(self):
        """The last one of metrics.jsonl, 0 without."""
        try:
            with open(self.path("metrics.jsonl"), "rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - 65536))
                lines = file.read().split(b"\n")[:-1]
            return int(json.loads(lines[-1])["step"])
        except (OSError, ValueError, IndexError, KeyError, TypeError):
            return 0

    def is_finished(self):
        """There is a result, and no checkpoint to go on from, nor steps that are asked for beyond it."""
        has_result = any(os.path.isdir(self.path(name)) for name in ("model", "adapter"))
        return has_result and not glob.glob(self.path_pattern("checkpoints", "step-*")) and self.step() >= self.steps

    def path_pattern(self, *names):
        return os.path.join(glob.escape(self.folder), *names)

    def signs_of_life(self):
        """Changes while texts are tokenised, steps done, and checkpoints and the result written."""
        found = []
        growing = [name for folder in ("token_cache", "checkpoints/*.tmp", "model", "adapter") for name in glob.glob(self.path_pattern(folder, "*"))]
        for name in [self.path("metrics.jsonl"), self.path("checkpoints"), *growing]:
            try:
                status = os.stat(name)
                found.append((name, status.st_mtime_ns, status.st_size))
            except OSError:
                pass
        return found

    def saved_elsewhere(self, places):
        """[(step, folder)] of this run's checkpoints that zero_train put where there was room when its own disk was full, by step."""
        found = []
        for place in places:
            for folder in glob.glob(glob.escape(place) + "/zero-checkpoint-*/step-*"):
                try:
                    with open(folder + "/manifest.json") as file:
                        run = json.load(file)["run"]
                    output = os.path.join(run["directory"], tomllib.loads(run["configuration"])["job"]["output_dir"])
                    if folder not in self.disowned and os.path.realpath(output) == os.path.realpath(self.folder):
                        found.append((int(os.path.basename(folder)[5:]), folder))
                except (OSError, ValueError, KeyError, TypeError):
                    pass
        return sorted(found)

    def disown(self, places):
        """What is saved elsewhere now is of a run that was here before one that begins: it stays where it is."""
        self.disowned |= {folder for _, folder in self.saved_elsewhere(places)}

    def bring_home(self, places):
        """Moves the newest one of them among the others, where it is newer than those and there is room; the rest of them are no use.
        A line that tells of it, None: there was none."""
        found = self.saved_elsewhere(places)
        for _, folder in found[:-1]:
            shutil.rmtree(os.path.dirname(folder), ignore_errors=True)
        if not found or found[-1][0] <= self.checkpoint():
            return None
        source = found[-1][1]
        target = self.path("checkpoints", os.path.basename(source))
        try:
            shutil.rmtree(target + ".tmp", ignore_errors=True)
            os.makedirs(target + ".tmp")
            for name in os.listdir(source):  # copytree() gathers reasons file by file, and one is enough
                shutil.copyfile(os.path.join(source, name), os.path.join(target + ".tmp", name))
            for name in [*glob.glob(glob.escape(target) + ".tmp/*"), target + ".tmp"]:
                descriptor = os.open(name, os.O_RDONLY)
                os.fsync(descriptor)
                os.close(descriptor)
            os.rename(target + ".tmp", target)
        except OSError as error:
            shutil.rmtree(target + ".tmp", ignore_errors=True)
            return f"{source} cannot be moved to {target} yet: {error.strerror or error}"
        shutil.rmtree(os.path.dirname(source), ignore_errors=True)
        return f"{source} is now {target}"

    def forget_elsewhere(self, places):
        for _, folder in self.saved_elsewhere(places):
            shutil.rmtree(os.path.dirname(folder), ignore_errors=True)
