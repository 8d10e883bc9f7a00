"""What scripts make of wrong arguments: refused with one line before anything is installed, built or run.

usage: test_scripts.py PROJECT_ROOT BIN [-k NAME]        exits 1 when something is wrong
"""
import json
import os
import subprocess
import sys

from checks import arguments, environment, run_checks

DEADLINE_SECONDS = 120


def run(root, *command, cwd=None, **more):
    """(exit code, standard output, standard error)"""
    done = subprocess.run([os.path.join(root, command[0]), *command[1:]], cwd=cwd or root, capture_output=True, text=True, timeout=DEADLINE_SECONDS, env=environment(**more))
    return done.returncode, done.stdout, done.stderr


def refuses(root, *command, pieces, code=2, **more):
    found, _, said = run(root, *command, **more)
    assert found == code and said.count("\n") == 1 and all(piece in said for piece in pieces), (command, found, said)


def check_filter_of_nothing(root, bin, folder):
    if bin == os.path.join(root, "build", "release", "bin"):  # which is what scripts/test builds
        refuses(root, "scripts/test", "config", "Nothing*", pieces=["Nothing*: no case of config has such a name"], code=1)


def check_lint(root, bin, folder):
    refuses(root, "scripts/lint", "nothere.cpp", pieces=["nothere.cpp: is no file of this project"])
    refuses(root, "scripts/lint", "README.md", pieces=["README.md: is no source"])
    refuses(root, "scripts/lint", "error.h", "log.c", cwd=os.path.join(root, "base"), pieces=["log.c: is no source"])


def check_planted_faults(root, bin, folder):
    """Those whose patches the sources have left behind look for nothing."""
    done = subprocess.run([sys.executable, root + "/tests/faults/find_faults.py", "--check"], capture_output=True, text=True, timeout=DEADLINE_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr


def check_plot(root, bin, folder):
    refuses(root, "scripts/plot", "nothere", pieces=["nothere: No such file or directory; name a run's output directory"])
    os.mkdir(folder + "/empty")
    refuses(root, "scripts/plot", folder + "/empty", pieces=["empty/metrics.jsonl: No such file"])
    with open(folder + "/metrics.jsonl", "w") as file:
        file.write("no run\n")
    refuses(root, "scripts/plot", folder + "/metrics.jsonl", pieces=["metrics.jsonl:1: is no object of a run's metrics"])
    code, said, _ = run(root, "scripts/plot", "--help")
    assert code == 0 and "Installs\nmatplotlib" in said, said


def check_pictures(root, bin, folder):
    runs = [folder + "/one", folder + "/two"]
    for place in runs:
        os.mkdir(place)
        with open(place + "/metrics.jsonl", "w") as file:
            file.writelines(json.dumps({"step": step, "loss": 5 - step, "lr": 0.1, "grad_norm": 1, "tokens_per_second": 9}) + "\n" for step in (1, 2))
    refuses(root, "scripts/plot", *runs, folder + "/nothere", pieces=["nothere: No such file or directory"])
    if subprocess.run(["/usr/bin/python3", "-c", "import matplotlib"], capture_output=True).returncode:
        return print("no matplotlib: nothing is drawn")
    for number, options in enumerate(([], ["--loss"])):
        picture = f"{folder}/{number}.svg"
        subprocess.run(["/usr/bin/python3", root + "/scripts/plot.py", *runs, *options, "-o", picture], check=True, stdout=subprocess.DEVNULL, timeout=DEADLINE_SECONDS)
        with open(picture) as file:
            drawn = file.read()
        assert all(f"<!-- {name} -->" in drawn for name in ("one", "two", "loss")) and ("<!-- tokens/s -->" in drawn) == (not options), options


def check_gpu_report(root, bin, folder):
    code, said, _ = run(root, "benchmarks/gpu_report", "--help", cwd=folder)
    assert code == 0 and said.startswith("usage: benchmarks/gpu_report [BUILD]") and "2 without a build" in said, said
    refuses(root, "benchmarks/gpu_report", folder, pieces=["scripts/build cuda makes build/cuda"])
    refuses(root, "benchmarks/gpu_report", "--fast", pieces=["--fast: is no option"])


def main():
    args = arguments(__doc__)
    root, bin = args.bin, args.data
    run_checks(args, globals(), lambda check, folder: check(root, bin, folder))


if __name__ == "__main__":
    main()
