"""Checks rules of the house that a compiler does not: includes of rooms, README.md in each room, the English of comments and of
Markdown pages.

usage: test_style.py [PROJECT_ROOT]        prints one line per breach, exits 1 when there is one
"""
import os
import re
import subprocess
import sys

SOURCES = (".h", ".inl", ".cpp", ".cu", ".cuh")

# A room is a folder, with the folders below it that are no rooms themselves (kernels/, cuda/). It may include itself and what
# is named here: a room, a room and all rooms below it ("models/*"), or a single header.
LOWER = ["base", "comm", "offload", "offload/*", "models", "models/*"]
ROOMS = {
    "base": [],
    "comm": ["base"],
    "comm/mpi": ["base", "comm"],
    "comm/nccl": ["base", "comm"],
    "comm/sim": ["base", "comm"],
    "comm/fake": ["base", "comm"],
    "comm/world": ["base", "comm", "comm/*"],
    "offload": ["base"],
    "offload/quantized": ["base"],
    "offload/memory": ["base", "offload"],
    "offload/disk": ["base", "offload", "offload/memory"],
    "models": ["base"],
    "models/ops": ["base", "models"],
    "models/parallel": ["base", "comm", "models"],
    "models/loss": ["base", "comm", "models", "models/ops", "models/parallel"],
    "models/nn": ["base", "models", "models/ops", "models/loss", "models/parallel"],
    "models/decoder": ["base", "models", "models/ops", "models/nn", "models/parallel"],
    "models/families": ["base", "models", "models/decoder"],
    "models/text": ["base"],
    "models/formats": ["base", "models", "models/text", "models/families", "models/decoder"],
    "models/lora": ["base", "models", "models/formats", "models/families"],
    "models/generate": ["base", "models", "models/*"],
    "zero/optim": ["base", "offload", "offload/quantized"],
    "zero/core": ["base", "comm", "offload", "offload/*", "models", "models/nn/recompute.h", "models/parallel/token_split.h", "zero/optim"],
    "zero/modules": ["base", "comm", "offload", "offload/*", "models", "zero/optim", "zero/core"],
    "zero/data": ["base", "comm", "models", "models/loss", "models/text", "models/formats"],
    "zero/checkpoint": ["base", "comm", "offload", "offload/memory", "models", "zero/core", "zero/optim"],
    "zero/library": ["base", "comm", "comm/fake", "comm/world", "models", "models/nn/recompute.h", "models/ops", "models/formats/safetensors.h",
                     "models/formats/safetensors_writer.h", "zero/optim", "zero/core", "zero/modules", "zero/checkpoint"],
    "zero/config": [*LOWER, "zero/optim", "zero/core", "zero/checkpoint"],
    "zero/output": [*LOWER, "zero/config", "zero/checkpoint"],
    "zero/report": ["base", "zero/output/run_header.h", "zero/output/sample_lines.h"],
    "zero/estimate": [*LOWER, "comm/fake", "zero/core", "zero/checkpoint", "zero/config", "zero/output"],
    "zero/plan": [*LOWER, "zero/core", "zero/config", "zero/estimate"],
    "zero/prove": [*LOWER, "zero/core", "zero/optim", "zero/config", "zero/train"],
    "zero/doctor": ["base", "comm", "comm/mpi/mpi_library.h", "comm/nccl/nccl_communicator.h", "comm/world", "offload", "offload/*", "base/process"],
    "zero/train": [*LOWER, "comm/world", "zero/core", "zero/optim", "zero/data", "zero/checkpoint", "zero/config", "zero/output", "zero/estimate"],
    "zero/fetch": ["base"],
    "zero/programs": [*LOWER, "comm/world", "zero/*"],
}
# (pattern of an included header, pattern of the files that may include it, what the rule says)
KEPT = [
    (r"mpi\.h", r"comm/(mpi|world)/[^/]*\.cpp|tests/mpi/own_mpi\.cpp|tests/programs/consumer/consumer\.cpp", "MPI's header stays in comm/mpi and comm/world"),
    (r"nccl\.h", r"(comm/nccl|tests/cuda/emulated)/[^/]*\.(cpp|h)", "NCCL's header stays in comm/nccl"),
    (r"cublasLt\.h", r"(models/ops/cuda|tests/cuda/emulated)/[^/]*\.(cpp|h)", "cuBLASLt's header stays in models/ops/cuda"),
    (r"toml\+\+.*", r"zero/config/config\.cpp|zero/report/run_settings\.cpp", "toml++ stays in zero/config/config.cpp and zero/report/run_settings.cpp"),
    (r"curl/.*", r"zero/fetch/http_client\.cpp", "libcurl stays in zero/fetch/http_client.cpp"),
    (r"spdlog/.*", r"base/log\.cpp", "spdlog stays in base/log.cpp"),
    (r"(ATen|c10|torch)/.*", r"(?!base/).*(?<!\.cu)", "no LibTorch header in base/ or in a .cu file"),
    (r"torch/library\.h", r"(?!base/|comm/|offload/|models/|zero/).*|models/ops/.*|zero/modules/parameter_watch.cpp|zero/library/nn/watched_batch_norm.cpp", "operations are registered in models/ops, what watches parameters in zero/modules, converted norms in zero/library"),
    (r"torch/torch\.h|torch/nn.*|torch/csrc/api/.*", r"(?!base/|comm/|offload/|models/|zero/).*|zero/(modules|library)/.*", "LibTorch's modules stay in zero/modules and zero/library"),
]


# An error of these reads as an absence, or ends the program in words of their own.
LOOKS = re.compile(r"\b(?:fs|filesystem)::(exists|is_(?:directory|regular_file|symlink|empty)|equivalent|status|symlink_status|file_size|last_write_time|(?:weakly_)?canonical|"
                   r"(?:recursive_)?directory_iterator)\b|(?<![\w.>:])::(l?stat)\(")
LOOKERS = r"base/files/[^/]*\.(h|cpp)|models/formats/gguf/tokenizer/gguf_tokenizer\.cpp|(?!base/|comm/|offload/|models/|zero/).*"


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
    """The room of a file or an included header, None outside them (tests, benchmarks, a library's header)."""
    folder = os.path.dirname(path)
    while folder and folder not in ROOMS:
        folder = os.path.dirname(folder)
    return folder or None


def may_include(room, header):
    target = room_of(header)
    return any(allowed in (target, header) or (allowed.endswith("/*") and target.startswith(allowed[:-1])) for allowed in [room, *ROOMS[room]])


def include_breaches(path, text):
    """(line, what) for every include that a rule forbids."""
    room = room_of(path)
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*["<]([^">]+)[">]', line)
        if not match:
            continue
        header = match.group(1)
        for kept, home, rule in KEPT:
            if re.fullmatch(kept, header) and not re.fullmatch(home, path):
                yield number, f"includes {header}: {rule}"
        if header.startswith(("../", "./")):
            yield number, f"includes {header}: headers are named from the project's root"
        if room and room_of(header) and not may_include(room, header):
            yield number, f"includes {header}: {room}/ may include {', '.join(ROOMS[room]) or 'no other room'}"


def breaches(path, text):
    """(line, what) for every rule that a source breaks."""
    yield from include_breaches(path, text)
    if not re.fullmatch(LOOKERS, path):
        for number, line in enumerate(text.splitlines(), 1):
            if match := LOOKS.search(line):
                yield number, f"calls {match[1] or match[2]}(): base/files/lookup.h tells an error from an absence"
    yield from comment_breaches(text)
    if path.endswith((".h", ".cuh")) and not re.match(r"(//[^\n]*\n|\s)*#pragma once\n", text):
        yield 1, "a header begins with #pragma once"


def folder_breaches(root):
    """(folder, what) for rooms that say nothing of themselves."""
    for folder in ROOMS:
        if not os.path.isfile(os.path.join(root, folder, "README.md")):
            yield folder, "has no README.md that says what it is for, what it may include and where to start"


def unlisted_checks(rules, checks_of):
    """(file, what) for the checks of tests/programs that its CMakeLists.txt does not run. checks_of: names by file."""
    listed = {}
    rules = re.sub(r"(?m)#.*$", "", rules)
    for names, body in re.findall(r"foreach\(check\s+([^)]*)\)(.*?)endforeach\(\)", rules, re.DOTALL):
        for file in re.findall(r"test_\w+\.py", body):
            listed.setdefault(file, set()).update(names.split())
    for file, options in re.findall(r"zero_script_test\([^)]*?(test_\w+\.py)([^)]*)\)", rules):
        names = re.findall(r"-k check_(\w+)", options)
        listed.setdefault(file, set()).update(names if " -k " in options else checks_of.get(file, ()))
    for file, names in checks_of.items():
        if lost := sorted(set(names) - listed.get(file, set())):
            yield file, f"CMakeLists.txt does not run check_{', check_'.join(lost)}"


def checks_of_programs(folder):
    """The names of the checks of each file."""
    found = {}
    for name in sorted(os.listdir(folder)):
        if re.fullmatch(r"test_\w+\.py", name):
            with open(os.path.join(folder, name)) as file:
                found[name] = re.findall(r"^def check_(\w+)", file.read(), re.MULTILINE)
    return found


MARKDOWN_WIDTH = 100
SENTENCE_WORDS = 25
COMMENT_WIDTH = 120
OLD_PAGES = ("CHANGELOG.md",)  # history keeps its words
BARE_START = re.compile(r"[(*_\"]*(What|Of|Whose)\b(?!.*\?$)")  # a question may begin so


def markdown_blocks(text):
    """(line number, lines) of each paragraph and list item: no headings, tables, code or HTML."""
    fence, block, start = "", [], 0
    for number, line in enumerate([*text.split("\n"), ""], 1):
        bare = line.strip()
        marks = re.match(r"```+|~~~+", bare)
        apart = bool(fence or marks or not bare or bare[0] in "#|<" or line.startswith("    ") and not block)
        if block and (apart or re.match(r"([-*+]|\d+\.) ", bare)):
            yield start, block
            block = []
        if fence:
            fence = "" if bare.startswith(fence) else fence
        elif marks:
            fence = marks.group()
        elif not apart:
            start, block = (start, block) if block else (number, block)
            block.append(line)


def sentences(lines):
    """The sentences of a paragraph or list item. A code span counts as one word, a link as its text."""
    text = re.sub(r"^([-*+]|\d+\.)\s+", "", " ".join(line.strip() for line in lines))
    text = re.sub(r"`[^`]*`", "`x`", re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text))
    return [sentence for sentence in re.split(r"(?<=[.!?])[)*_]*\s+", text) if sentence]


def riddles(sentence):
    """What is hard to read in a sentence of a page or of a comment."""
    opening = " ".join(sentence.split()[:6])
    if BARE_START.match(sentence):
        yield f'"{opening} ...": no sentence begins with a bare What, Of or Whose; put the subject first'
    if re.search(r"\b(told|tells?) of\b", sentence):
        yield f'"{opening} ..." tells of something: say reports, warns or shows'


def comment_breaches(text):
    """(line, what) for comments of a source that are hard to read. A comment behind code qualifies its name, and may begin with Of."""
    block, start = [], 0
    for number, line in enumerate([*text.split("\n"), ""], 1):
        comment = re.match(r"\s*//+ ?(?! )(.*)$", line)  # an indented line is code or a table
        if comment and len(line) > COMMENT_WIDTH:
            yield number, f"has {len(line)} characters: comments wrap at {COMMENT_WIDTH}"
        if comment and comment.group(1):
            start, block = (start, block) if block else (number, block)
            block.append(comment.group(1))
            continue
        for sentence in sentences(block):
            yield from ((start, what) for what in riddles(sentence))
        block = []


def markdown_breaches(text):
    """(line, what) for sentences and lines of a Markdown page that are hard to read."""
    for start, lines in markdown_blocks(text):
        for number, line in enumerate(lines, start):
            # A single long word, such as a link or a code span, cannot be wrapped.
            if len(line) > MARKDOWN_WIDTH and " " in re.sub(r"`[^`]*`", "x", line.strip("-*+ ")):
                yield number, f"has {len(line)} characters: Markdown wraps at {MARKDOWN_WIDTH}"
        for sentence in sentences(lines):
            opening = " ".join(sentence.split()[:6])
            words = sum(bool(re.search(r"[A-Za-z0-9`]", word)) for word in sentence.split())
            if words > SENTENCE_WORDS:
                yield start, f'"{opening} ..." has {words} words: a sentence has at most {SENTENCE_WORDS}'
            yield from ((start, what) for what in riddles(sentence))


def self_test():
    """The rules must be able to fail."""
    broken = [("comm/a.cpp", '#include "zero/core/engine.h"\n'), ("models/nn/a.cpp", '#include "comm/communicator.h"\n'), ("zero/core/a.cpp", '#include "zero/config/config.h"\n'),
              ("zero/core/buffers/a.cpp", '#include "models/nn/linear.h"\n'), ("models/ops/cuda/a.cpp", '#include "comm/communicator.h"\n'), ("comm/a.cpp", '#include "comm/mpi/point_to_point.h"\n'),
              ("zero/train/a.cpp", '#include "comm/nccl/nccl_communicator.h"\n'), ("zero/fetch/hub.cpp", "#include <curl/curl.h>\n"), ("zero/fetch/a.cpp", '#include "zero/config/config.h"\n'), ("zero/core/a.cpp", "#include <mpi.h>\n"), ("zero/config/b.cpp", "#include <toml++/toml.h>\n"),
              ("comm/nccl/cuda/a.cu", "#include <ATen/ATen.h>\n"), ("base/a.cpp", "#include <ATen/ATen.h>\n"), ("comm/a.h", "int x;\n"),
              ("zero/core/a.cpp", "#include <torch/torch.h>\n"), ("models/nn/a.cpp", "#include <torch/library.h>\n"), ("zero/core/a.cpp", '#include "../a.h"\n'),
              ("models/a.cpp", "if (std::filesystem::exists(path)) return;\n"), ("zero/core/a.cpp", "return fs::is_directory(path, none);\n"), ("comm/a.cpp", "::stat(path, &it);\n"),
              ("comm/a.h", "#pragma once\n// What a rank does.\n"), ("comm/a.cpp", "  /// Fine.\n  /// Of two\n  /// one.\n"), ("comm/a.cpp", "// The user is told of it.\n"), ("comm/a.cpp", f"// {'a ' * 60}\n")]
    fine = [("models/nn/a.cpp", '#include "base/error.h"\n'), ("models/ops/a.cpp", "#include <torch/library.h>\n"), ("comm/mpi/backend.cpp", "#include <mpi.h>\n"), ("zero/core/a.h", '// Why.\n#pragma once\n#include "models/unit.h"\n'),
            ("tests/unit/a_test.cpp", '#include "zero/config/config.h"\n#include <torch/torch.h>\n'), ("zero/config/config.cpp", "#include <toml++/toml.h>\n"),
            ("tests/unit/a_test.cpp", "fs::exists(path);\n"), ("base/files/a.cpp", "std::filesystem::weakly_canonical(path, error);\n"),
            ("zero/core/buffers/a.cpp", '#include "zero/core/engine.h"\n#include "offload/quantized/nf4.h"\n'),
            ("comm/a.cpp", "// Who? What?\nint x;  // Of the sum.\n//   What(x)\n\n// a\n// of b\n"), ("comm/a.cpp", f"// {'a ' * 58}\n")]
    for path, text in broken:
        assert list(breaches(path, text)), (path, text)
    for path, text in fine:
        assert not list(breaches(path, text)), (path, text, list(breaches(path, text)))
    assert len(list(folder_breaches("/nowhere"))) == len(ROOMS)
    rules = "foreach(check a\n  b)\n  zero_script_test(x.${check} test_x.py ARGUMENTS -k check_${check})\nendforeach()\nzero_script_test(y test_y.py)\nzero_script_test(z test_z.py ARGUMENTS -k check_one)"
    assert list(unlisted_checks("# zero_script_test(y test_y.py)", {"test_y.py": ["c"]}))
    assert not list(unlisted_checks(rules, {"test_x.py": ["a", "b"], "test_y.py": ["c"], "test_z.py": ["one"]}))
    assert [file for file, _ in unlisted_checks(rules, {"test_x.py": ["a", "c"], "test_z.py": ["two"], "test_w.py": ["a"]})] == ["test_x.py", "test_z.py", "test_w.py"]
    words = "of words\n"
    for page in ("What it does is plain.\n", "Fine.\n\n- Fine. Of two, one.\n", words * 13, "a " * 51 + "\n", "The user is told of it.\n", "1. Fine.\n   Whose it is.\n"):
        assert list(markdown_breaches(page)), page
    for page in ("What is it?\n", f"# {'Of words ' * 13}\n\n| {'What ' * 26}|\n\n```\n{words * 13}\n\n{'a ' * 51}\n```\n", "A sentence\n" + "`a b c`\n" * 10, f"[a]({'b' * 100})\n", f"`{'a ' * 51}`\n",
                 words * 12 + "\n" + words * 12, "- " + words * 12 + "- " + words * 12):
        assert not list(markdown_breaches(page)), (page, list(markdown_breaches(page)))
    assert list(markdown_breaches("Fine.\n```\nWhat\n```\n\nWhat\nit is.\n"))[0][0] == 6


def main():
    root = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", ".."))
    self_test()
    sources = [path for path in files_of(root) if path.endswith(SOURCES)]
    found = 0
    for path in sources:
        with open(os.path.join(root, path), errors="replace") as file:
            text = file.read()
        for line, what in breaches(path, text):
            print(f"{path}:{line}: {what}")
            found += 1
    pages = [path for path in files_of(root) if path.endswith(".md") and path not in OLD_PAGES]
    for path in pages:
        with open(os.path.join(root, path), errors="replace") as file:
            text = file.read()
        for line, what in markdown_breaches(text):
            print(f"{path}:{line}: {what}")
            found += 1
    programs = os.path.join(root, "tests", "programs")
    with open(os.path.join(programs, "CMakeLists.txt")) as file:
        rules = file.read()
    for name, what in unlisted_checks(rules, checks_of_programs(programs)):
        print(f"tests/programs/{name}: {what}")
        found += 1
    for folder, what in folder_breaches(root):
        print(f"{folder}/: {what}")
        found += 1
    print(f"{len(sources)} sources, {len(pages)} pages, {found} breaches")
    sys.exit(found > 0)


if __name__ == "__main__":
    main()
