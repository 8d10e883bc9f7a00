"""Checks rules of the house that a compiler does not: who may include whom, files of one page, words that do not belong.

usage: test_style.py [PROJECT_ROOT]        prints one line per breach, exits 1 when there is one
"""
import os
import re
import subprocess
import sys

SOURCES = (".h", ".cpp", ".cu", ".cuh")
MAX_LINES = 400

# A room may include itself and the rooms named here. zero/ is its core: the files right in it.
ROOMS = {
    "comm": [],
    "offload": ["comm"],
    "models": [],
    "zero": ["comm", "offload", "zero/optim"],
    "zero/optim": ["comm", "offload"],
    "zero/data": ["comm", "offload", "models", "zero"],
    "zero/checkpoint": ["comm", "offload", "models", "zero", "zero/optim", "zero/data"],
    "zero/train": ["comm", "offload", "models", "zero", "zero/optim", "zero/data", "zero/checkpoint"],
}
# Single headers that a room may include although it may not include their room.
HEADERS = {
    "models": ["comm/error.h", "comm/log.h"],
    "zero": ["models/unit.h", "models/tensor_spec.h", "models/recompute.h", "models/weight_source.h"],
}
# (pattern of an included header, pattern of the files that may include it, what the rule says)
KEPT = [
    (r"mpi\.h|nccl\.h", r"(comm|tests/cuda/emulated)/[^/]*\.cpp", "MPI and NCCL headers stay in comm/*.cpp"),
    (r"toml\+\+.*", r"zero/train/config\.cpp", "toml++ stays in zero/train/config.cpp"),
    (r"spdlog/.*", r"comm/log\.cpp", "spdlog stays in comm/log.cpp"),
    (r"torch/torch\.h|torch/nn.*|torch/csrc/api/.*", r"(?!)", "ATen and autograd only, not torch/torch.h"),
]
LIBTORCH = re.compile(r"^(ATen|c10|torch)/")
# Pieces are joined so that this file does not hold the words itself.
FORBIDDEN = re.compile("|".join(["/" + "work/", "/opt/" + "peers", "/opt/" + "pypi", "design" + r"\.md section \d", r"\bthe br" + "ief\b",
                                 r"\bissue " + r"#?\d", "py" + r"pi\.org", r"\bClau" + "de", r"\bAnthro" + "pic", r"\bAI ag" + "ent"]))
TEXTS = SOURCES + (".py", ".md", ".toml", ".txt", ".cmake", ".json", ".sh", "")
DATA = ("examples/data/", "tests/data/")


def files_of(root):
    """The project's own files: what git tracks, and untracked files that it does not ignore."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True)
    if listed.returncode == 0:
        names = listed.stdout.decode().split("\0")
    else:  # an archive without .git
        names = [os.path.relpath(os.path.join(folder, name), root) for folder, folders, found in os.walk(root)
                 if not folders.__setitem__(slice(None), [f for f in folders if f not in ("build", ".deps", ".git", "outputs")]) for name in found]
    return sorted(n for n in names if n and os.path.isfile(os.path.join(root, n)))


def room_of(path):
    """The room of a file or an included header, None outside of them (tests, benchmarks, a library's header)."""
    folder = os.path.dirname(path)
    return folder if folder in ROOMS else None


def include_breaches(path, text):
    """(line, what) for every include that a rule forbids."""
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*["<]([^">]+)[">]', line)
        if not match:
            continue
        header = match.group(1)
        for kept, home, rule in KEPT:
            if re.fullmatch(kept, header) and not re.fullmatch(home, path):
                yield number, f"includes {header}: {rule}"
        if path.endswith((".cu", ".cuh")) and LIBTORCH.match(header):
            yield number, f"includes {header}: no LibTorch header in a .cu file"
        if path == "comm/log.cpp" and LIBTORCH.match(header):
            yield number, f"includes {header}: comm/log.cpp never sees LibTorch"
        room, target = room_of(path), room_of(header)
        if header.startswith("../") or header.startswith("./"):
            yield number, f"includes {header}: headers are named from the project's root"
        if room and target and room != target and target not in ROOMS[room] and header not in HEADERS.get(room, []):
            allowed = ROOMS[room] + HEADERS.get(room, [])
            yield number, f"includes {header}: {room}/ may include {', '.join(allowed) or 'no other room'}"


def breaches(path, text):
    if path.endswith(SOURCES):
        yield from include_breaches(path, text)
        lines = text.count("\n")
        if lines > MAX_LINES:
            yield lines, f"has {lines} lines: {MAX_LINES} at most"
        if path.endswith((".h", ".cuh")) and not re.match(r"(//[^\n]*\n|\s)*#pragma once\n", text):
            yield 1, "a header begins with #pragma once"
    if path.startswith(DATA):
        return
    for number, line in enumerate(text.splitlines(), 1):
        match = FORBIDDEN.search(line)
        if match:
            yield number, f"says {match.group(0)!r}, which is no part of the project"


def self_test():
    """The rules must be able to fail."""
    cases = [("comm/a.cpp", '#include "zero/engine.h"\n'), ("models/a.cpp", '#include "comm/world.h"\n'), ("zero/a.cpp", '#include "zero/train/config.h"\n'),
             ("zero/a.cpp", "#include <mpi.h>\n"), ("zero/train/b.cpp", "#include <toml++/toml.h>\n"), ("comm/a.cu", "#include <ATen/ATen.h>\n"),
             ("comm/a.h", "int x;\n"), ("zero/a.cpp", "\n" * (MAX_LINES + 1)), ("README.md", "see /wo" + "rk/x\n"), ("zero/a.cpp", "#include <torch/torch.h>\n")]
    fine = [("models/a.cpp", '#include "comm/error.h"\n'), ("comm/mpi_backend.cpp", "#include <mpi.h>\n"), ("zero/a.h", '// Why.\n#pragma once\n#include "models/unit.h"\n'),
            ("tests/unit/a_test.cpp", '#include "zero/train/config.h"\n'), ("zero/train/config.cpp", "#include <toml++/toml.h>\n")]
    for path, text in cases:
        assert list(breaches(path, text)), (path, text)
    for path, text in fine:
        assert not list(breaches(path, text)), (path, text, list(breaches(path, text)))


def main():
    root = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", ".."))
    self_test()
    count = found = 0
    for path in files_of(root):
        if os.path.splitext(path)[1] not in TEXTS:
            continue
        with open(os.path.join(root, path), errors="replace") as file:
            text = file.read()
        count += 1
        for line, what in breaches(path, text):
            print(f"{path}:{line}: {what}")
            found += 1
    print(f"{count} files, {found} breaches")
    sys.exit(found > 0)


if __name__ == "__main__":
    main()
