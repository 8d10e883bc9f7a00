"""Runs the plain mpirun commands of README.md and docs/running.md as they stand, with --dry-run behind them, on this machine and as this user, after the exports
that stand above them; and measures the length of these pages' lines.

usage: test_readme.py PROJECT_ROOT BIN        exits 1 when something is wrong
"""
import os
import re
import subprocess
import sys
import tempfile


def blocks(text):
    return re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)


def broken_links(root):
    """(page, target) for every relative link of a Markdown page that leads to no file."""
    pages = [os.path.join(folder, name) for place in (".", "docs") for folder, _, names in os.walk(os.path.join(root, place))
             if place == "docs" or folder == os.path.join(root, place) for name in names if name.endswith(".md")]
    for page in pages:
        with open(page) as file:
            targets = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", re.sub(r"^```.*?^```", "", file.read(), flags=re.M | re.S))
        for target in targets:
            if not os.path.exists(os.path.join(os.path.dirname(page), target)):
                yield os.path.relpath(page, root), target


def main():
    root, bin = map(os.path.abspath, sys.argv[1:3])
    text = ""
    for page in ("README.md", "docs/running.md"):
        with open(os.path.join(root, page)) as file:
            own = file.read()
        text += own
        long = [number for number, line in enumerate(own.splitlines(), 1) if len(line) > 120]
        assert not long, f"{page} has lines of more than 120 columns: {long}"
    broken = list(broken_links(root))
    assert not broken, f"links that lead nowhere: {broken}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OMPI_")}
    ran = 0
    with tempfile.TemporaryDirectory(prefix="zero-readme-") as folder:
        os.symlink(os.path.join(root, "examples"), os.path.join(folder, "examples"))
        os.makedirs(os.path.join(folder, "build/release"))
        os.symlink(bin, os.path.join(folder, "build/release/bin"))
        for block in blocks(text):
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
    print(f"{ran} commands ran")


if __name__ == "__main__":
    main()
