"""What the tests of refusals share: cases that run zero_train with bad input. Each must end with exit code 2 and one message, from
rank 0, that names the place and the rule; nothing may be written, and nothing may hang. Every third case runs on two ranks, the others
on one: most of a case's time is the start of its ranks. ZERO_WHOLE_MATRIX=1 runs all on two.

A case: its name, how the good place is spoilt (or None), --set pairs, pieces that the message must hold.
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
from concurrent.futures import ThreadPoolExecutor

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


def text(content):
    def write(place):
        with open(place.path("config.toml"), "w") as file:
            file.write(content)
    return write


def keys(extra):
    return lambda place: place.config(CONFIG, extra)


def files_in(folder, *names):
    def act(place):
        os.mkdir(place.path(folder))
        for name in names:
            open(os.path.join(place.path(folder), name), "w").close()
    return act


def remove(name):
    def act(place):
        path = place.path(name)
        shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    return act


def tree(folder):
    """Every file below a folder with its size and time of change."""
    found = {}
    for base, folders, names in os.walk(folder):
        for name in folders + names:
            status = os.stat(os.path.join(base, name))
            found[os.path.relpath(os.path.join(base, name), folder)] = (status.st_size, status.st_mtime_ns) if name in names else None
    return found


def run(program, place, ranks, pairs):
    """(exit code or None after the deadline, standard output, standard error without mpirun's own boxes)."""
    command = (mpirun(ranks) if ranks > 1 else []) + [program, "config.toml"] + [word for pair in pairs for word in ("--set", pair)]
    process = subprocess.Popen(command, cwd=place.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                               env=environment())
    try:
        out, err = process.communicate(timeout=DEADLINE_SECONDS)
    except subprocess.TimeoutExpired:
        process.terminate()  # mpirun ends its ranks
        process.communicate()
        return None, "", ""
    return process.returncode, out, re.sub(r"(?ms)^-{60,}\n.*?^-{60,}\n", "", err)


def faults(program, data, ranks, case):
    """What is wrong with the program's answer to a case: nothing, or a sentence each."""
    name, spoil, pairs, pieces = case
    with tempfile.TemporaryDirectory(prefix=f"zero-{name}-") as folder:
        place = Place(folder, data)
        if spoil:
            spoil(place)
        before = tree(folder)
        code, out, err = run(program, place, ranks, pairs)
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


def main(usage, all_cases, on_two_ranks=()):
    """`on_two_ranks`: names of cases whose messages count the ranks."""
    parser = argparse.ArgumentParser(description=usage, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("zero_train")
    parser.add_argument("data")
    parser.add_argument("-k", default="", help="only cases whose name holds this")
    parser.add_argument("-v", action="store_true", help="show every message")
    args = parser.parse_args()
    whole = "ZERO_WHOLE_MATRIX" in os.environ
    cases = [(2 if whole or number % 3 == 0 or case[0] in on_two_ranks else 1, case) for number, case in enumerate(all_cases) if args.k in case[0]]
    failed = 0
    program, data = os.path.abspath(args.zero_train), os.path.abspath(args.data)
    # Several at once: while the ranks of one start or end, those of another compute.
    pool = ThreadPoolExecutor(3)
    for (_, case), (found, said) in zip(cases, pool.map(lambda ranks_and_case: faults(program, data, *ranks_and_case), cases)):
        failed += bool(found)
        if found or args.v:
            print(f"{case[0]}: {'; '.join(found) or 'ok'}\n    " + said.strip().replace("\n", "\n    "), flush=True)
    print(f"{len(cases)} cases, {failed} failed")
    sys.exit(failed > 0 or not cases)
