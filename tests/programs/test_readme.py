"""Checks the pages: their links and anchors, and their commands. The commands of PLACE_PAGES run, in small. Any other block of shell has a mark above it that says why
it does not run, or which test runs it. The plain mpirun commands of README.md and docs/running.md run as they stand, with --dry-run behind them, on this machine and as
this user, after the exports that stand above them. Measures the length of these two pages' lines.

usage: test_readme.py PROJECT_ROOT BIN        exits 1 when something is wrong
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile


# What a command is given here in addition, so that it takes seconds.
SMALL = " --set lr_scheduler.warmup_steps=0 --set training.steps=2 --set training.seq_len=64"
SMALL_LORA = " --set lr_scheduler.warmup_steps=0 --set training.epochs=0.02"  # examples of a chat are longer than 64 tokens
MARK = re.compile(r"<!-- (?:not run: (?P<reason>[^\n]+)|run by (?P<test>test_\w+\.py)) -->\n+")
# Pages whose commands build on each other, in this order, in one folder.
PLACE_PAGES = ("docs/tutorial.md", "docs/running.md", "docs/report.md", "docs/install.md", "docs/generation.md")
SECONDS = 600


def pages_of(root):
    """Paths of the Markdown pages for users and contributors, from the root."""
    found = [name for name in os.listdir(root) if name.endswith(".md")]
    for folder, _, names in os.walk(os.path.join(root, "docs")):
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names if name.endswith(".md")]
    return sorted(found)


def read(root, page):
    with open(os.path.join(root, page)) as file:
        return file.read()


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def anchors(text):
    """The anchors of a page's headings, as GitHub and MyST name them."""
    found = []
    for heading in re.findall(r"^#+ +(.+)$", without_code(text), re.M):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found.append(slug + (f"-{found.count(slug)}" if slug in found else ""))
    return set(found)


def broken_links(root):
    """(page, target) for every relative link of a Markdown page that leads to no file, or to no heading."""
    for page in pages_of(root):
        for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)", without_code(read(root, page))):
            path = os.path.normpath(os.path.join(os.path.dirname(page), target)) if target else page
            if not os.path.exists(os.path.join(root, path)):
                yield page, target
            elif anchor and path.endswith(".md") and anchor not in anchors(read(root, path)):
                yield page, f"{target}#{anchor}"


def commands(text):
    """(commands, reason, test) of each block of shell: the mark above it says why it does not run here, or which test runs it."""
    for match in re.finditer(r"(?P<mark><!-- [^\n]+ -->\n+)?^```sh\n(?P<body>.*?)^```", text, re.M | re.S):
        mark = MARK.fullmatch(match["mark"] or "")
        yield match["body"], mark and mark["reason"], mark and mark["test"]


def mark_breaches(root):
    """(page, what) for blocks that neither run here nor say who runs them, and for tests that do not know the program."""
    tests = os.path.join(root, "tests/programs")
    for page in pages_of(root):
        for body, reason, test in commands(read(root, page)):
            if test and not os.path.exists(os.path.join(tests, test)):
                yield page, f"{test}: there is no such test"
            elif test and not all(name in read(tests, test) for name in re.findall(r"\b(?:zero_[a-z]+|keep_training)\b", body)):
                yield page, f"{test} does not run what the block shows: {body}"
            elif not test and not reason and page not in PLACE_PAGES:
                yield page, f"a block of commands has no mark <!-- not run: REASON --> or <!-- run by test_NAME.py -->: {body}"


def own_keys(root):
    """The keys of the configuration, as "section.key", from its generated page."""
    sections = re.split(r"^## \[(\w+)\]$", read(root, "docs/configuration.md"), flags=re.M)[1:]
    return {f"{section}.{key}" for section, body in zip(sections[::2], sections[1::2]) for key in re.findall(r"^\| `(\w+)`", body, re.M)}


def foreign_key_breaches(root):
    """Keys of docs/coming-from.md that zero does not have, and rows that contradict the messages about other tools' keys."""
    page, known = read(root, "docs/coming-from.md"), own_keys(root)
    assert len(known) > 50, "docs/configuration.md has another form than this test reads"
    source = read(root, "zero/config/foreign_keys.cpp")
    meant = dict(re.findall(r'\{"([\w.]+)", [^"]*(?:"[^"]*"[^"]*)?, "(\w+\.\w+)",', source))
    assert len(meant) > 80, "zero/config/foreign_keys.cpp has another form than this test reads"
    for theirs, ours in re.findall(r"^\| (`.*?) \| (`.*?) \|", page, re.M):
        keys = re.findall(r"`(\w+\.\w+)`", ours)
        yield from (f"{key}: is no key" for key in keys if key not in known)
        if ", " not in ours:
            for foreign in re.findall(r"`([\w.]+)", theirs):
                said = meant.get(foreign) or meant.get(foreign.split(".")[-1])
                if keys and said and said not in keys:
                    yield f"{foreign}: the page says {keys}, messages say {said}"
    sections = "|".join({key.split(".")[0] for key in known})
    ours = re.sub(r"^\| .*? \| ", "", page, flags=re.M)  # without the column of the other tool
    yield from (f"{key}: is no key" for key in re.findall(rf"`((?:{sections})\.\w+)`", ours) if key not in known)


def in_small(line):
    """A command that trains or generates, with less to do."""
    command, hash_sign, comment = line.partition("  #")
    trains = command.startswith("scripts/train ") or command.startswith("mpirun ") and "zero_train" in command
    if trains:
        separator = " --" if command.startswith("scripts/train ") and " -- " not in command else ""
        anew = "" if "--preview" in command else " --overwrite"
        return command.rstrip() + separator + anew + (SMALL_LORA if "smollm2.toml" in command else SMALL)
    if "zero_generate" in command and "--max-new-tokens" not in command and "--logits" not in command:
        return command.rstrip() + " --max-new-tokens 2"
    return command


def prepare(folder, root, bin):
    for name in ("examples", "scripts"):
        os.symlink(os.path.join(root, name), os.path.join(folder, name))
    os.makedirs(os.path.join(folder, "build/release"))
    os.symlink(bin, os.path.join(folder, "build/release/bin"))
    for name, target in (("MODEL", "outputs/merged"), ("RUN", "outputs/pretrain"), ("ADAPTER", "outputs/smollm2/adapter"), ("outputs/lr-1", "pretrain")):
        os.makedirs(os.path.join(folder, "outputs"), exist_ok=True)
        os.symlink(target, os.path.join(folder, name))
    # A file under the name of the tutorial's: a model trained for two steps, with the chat template of another.
    run = [bin + "/zero_train", "examples/pretrain.toml", *SMALL.split(), "--set", "job.output_dir=made"]
    subprocess.run(run, cwd=folder, check=True, capture_output=True, timeout=SECONDS)
    shutil.copy(os.path.join(root, "tests/data/tinyllama-chat/tokenizer_config.json"), os.path.join(folder, "made/model"))
    os.makedirs(os.path.join(folder, ".deps/smollm2"))
    export = [bin + "/zero_export", "made/model", ".deps/smollm2/SmolLM2-135M-Instruct.gguf", "--gguf", "Q8_0"]
    subprocess.run(export, cwd=folder, check=True, capture_output=True, timeout=SECONDS)
    chat = json.dumps({"messages": [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "I."}]}) + "\n"
    for name, content in (("prompts.txt", "In the\n"), ("book.txt", "In the beginning\n"), ("chats.jsonl", chat), ("held_out.jsonl", chat), ("ids.bin", "\1\0\2\0")):
        with open(os.path.join(folder, name), "w") as file:
            file.write(content)


def run_pages(root, bin):
    """Runs every unmarked block of PLACE_PAGES, in small. Returns their number."""
    ran = 0
    env = {name: value for name, value in os.environ.items() if not name.startswith("OMPI_")}
    env.update(ZERO_BIN=bin, PATH=bin + ":" + env["PATH"], OMP_NUM_THREADS="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1")
    with tempfile.TemporaryDirectory(prefix="zero-pages-") as folder:
        prepare(folder, root, bin)
        for page in PLACE_PAGES:
            for body, reason, test in commands(read(root, page)):
                if reason or test:
                    continue
                script = "set -e\n" + "\n".join(in_small(line) for line in body.replace("\\\n", " ").splitlines())
                done = subprocess.run(["bash", "-c", script], cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS)
                assert done.returncode == 0, (page, script, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
                ran += 1
    return ran


def check_what_is_found(root):
    """The checks find a link without its file, a link without its anchor, and a block that nobody runs."""
    with tempfile.TemporaryDirectory(prefix="zero-links-") as folder:
        os.makedirs(os.path.join(folder, "docs"))
        for name, content in (("a.md", "# A b\n[1](#a-b) [2](b.md) [3](#c)\n```sh\nls\n```\n"), ("a.html", '<p id="x"><a href="#x">1</a> <a href="#y">2</a> <a href="b.html">3</a>')):
            with open(os.path.join(folder, name), "w") as file:
                file.write(content)
        assert list(broken_links(folder)) == [("a.md", "b.md"), ("a.md", "#c")], list(broken_links(folder))
        assert len(list(mark_breaches(folder))) == 1, list(mark_breaches(folder))
        done = subprocess.run([sys.executable, os.path.join(root, "docs/site/check_links.py"), folder], capture_output=True, text=True)
        assert done.returncode == 1 and sorted(done.stdout.split("\n")) == ["", "a.html: #y: the page has no such anchor", "a.html: b.html: there is no such file"], done


def main():
    root, bin = map(os.path.abspath, sys.argv[1:3])
    text = ""
    for page in ("README.md", "docs/running.md"):
        with open(os.path.join(root, page)) as file:
            own = file.read()
        text += own
        long = [number for number, line in enumerate(own.splitlines(), 1) if len(line) > 120]
        assert not long, f"{page} has lines of more than 120 columns: {long}"
    check_what_is_found(root)
    broken = list(broken_links(root))
    assert not broken, f"links that lead nowhere: {broken}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OMPI_")}
    ran = 0
    with tempfile.TemporaryDirectory(prefix="zero-readme-") as folder:
        os.symlink(os.path.join(root, "examples"), os.path.join(folder, "examples"))
        os.makedirs(os.path.join(folder, "build/release"))
        os.symlink(bin, os.path.join(folder, "build/release/bin"))
        for block, _, _ in commands(text):
            lines = block.splitlines()
            exports = [line for line in lines if line.startswith("export ")]
            for command in [line for line in lines if line.startswith("mpirun ")]:
                # More ranks than the machine has cores, too: that is what the exports promise.
                for ranks in (re.search(r"-np (\d+)", command).group(1), str(os.cpu_count() + 2)):
                    script = "\n".join([*exports, re.sub(r"-np \d+", f"-np {ranks}", command) + f" --dry-run --set training.global_batch_size={8 * int(ranks)}"])
                    done = subprocess.run(["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
                    assert done.returncode == 0 and "memory of one rank" in done.stdout, (script, done)
                    ran += 1
    assert ran, "README.md and docs/running.md show no mpirun command"
    foreign = list(foreign_key_breaches(root))
    assert not foreign, f"docs/coming-from.md: {foreign}"
    breaches = list(mark_breaches(root))
    assert not breaches, "\n".join(f"{page}: {what}" for page, what in breaches)
    print(f"{ran} commands and {run_pages(root, bin)} blocks of pages ran")


if __name__ == "__main__":
    main()
