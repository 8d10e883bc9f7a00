"""Runs README's plain mpirun commands as they stand, with --dry-run behind them, on this machine and as this user, after the exports
that stand above them; and measures the README's lines.

usage: test_readme.py PROJECT_ROOT BIN        exits 1 when something is wrong
"""
import os
import re
import subprocess
import sys
import tempfile


def blocks(text):
    return re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)


def main():
    root, bin = map(os.path.abspath, sys.argv[1:3])
    with open(os.path.join(root, "README.md")) as file:
        text = file.read()
    long = [number for number, line in enumerate(text.splitlines(), 1) if len(line) > 120]
    assert not long, f"README.md has lines of more than 120 columns: {long}"
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
    assert ran, "README.md shows no mpirun command"
    print(f"{ran} commands ran")


if __name__ == "__main__":
    main()
