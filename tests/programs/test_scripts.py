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


def check_requeued_job(root, bin, folder):
    """Slurm starts the same command again: it goes on with the run that its first start began, whatever that removed."""
    for name, body in (("srun", 'printf "%s\\n" "$@"'), ("program", "")):
        with open(os.path.join(folder, name), "w") as file:
            file.write(f"#!/bin/sh\n{body}\n")
        os.chmod(os.path.join(folder, name), 0o755)
    program, path = os.path.join(folder, "program"), folder + os.pathsep + os.environ["PATH"]
    for count, words in (("0", ["config.toml", "--overwrite", "--set", "a=b c"]), ("1", ["config.toml", "--set", "a=b c", "--resume"])):
        done = subprocess.run(["bash", os.path.join(root, "examples", "slurm.sbatch"), "config.toml", "--overwrite", "--set", "a=b c"], capture_output=True, text=True, cwd=folder,
                              env=environment(PATH=path, ZERO_TRAIN=program, SLURM_RESTART_COUNT=count))
        assert done.returncode == 0 and done.stdout.splitlines()[-len(words) - 1:] == [program, *words], done


def check_plot(root, bin, folder):
    refuses(root, "scripts/plot", "nothere", pieces=["nothere: No such file or directory; name a run's output directory"])
    os.mkdir(folder + "/empty")
    refuses(root, "scripts/plot", folder + "/empty", pieces=["empty/metrics.jsonl: No such file"])
    with open(folder + "/metrics.jsonl", "w") as file:
        file.write("no run\n")
    refuses(root, "scripts/plot", folder + "/metrics.jsonl", pieces=["metrics.jsonl:1: is no object of a run's metrics"])
    code, said, _ = run(root, "scripts/plot", "--help")
    assert code == 0 and "Needs matplotlib" in said, said


def check_plot_installs_nothing(root, bin, folder):
    """Without matplotlib it says who installs it."""
    with open(folder + "/metrics.jsonl", "w") as file:
        file.write('{"step": 1, "loss": 5}\n')
    with open(folder + "/matplotlib.py", "w") as file:
        file.write("raise ImportError\n")
    for name in ("apt-get", "sudo"):
        with open(f"{folder}/{name}", "w") as file:
            file.write(f"#!/bin/sh\ntouch {folder}/called\n")
        os.chmod(f"{folder}/{name}", 0o755)
    lacking = {"PYTHONPATH": folder, "PATH": folder + os.pathsep + os.environ["PATH"]}
    refuses(root, "scripts/plot", folder, pieces=["plot: there is no matplotlib: `scripts/setup plot` installs"], **lacking)
    refuses(root, "scripts/plot", folder + "/nothere", pieces=["nothere: No such file or directory"], **lacking)
    assert not os.path.exists(folder + "/called")


def check_names_of_runs(root, bin, folder):
    """The shortest ends of their paths that differ."""
    sys.path.insert(0, os.path.join(root, "scripts"))
    from plot import names_of
    for paths, names in ((["a/run", "b/run"], ["a/run", "b/run"]), (["a/one", "a/two"], ["one", "two"]), (["one"], ["one"]), (["x/lr1/run/out", "x/lr2/run/out"], ["lr1/run/out", "lr2/run/out"]),
                         (["a/run", "b/run", "b/other"], ["a/run", "b/run", "other"]), (["run", "b/run"], [os.path.basename(folder) + "/run", "b/run"])):
        for path in paths:
            os.makedirs(os.path.join(folder, path), exist_ok=True)
        found = names_of([os.path.join(folder, path) for path in paths])
        assert found == names, (paths, found)
    assert names_of([folder + "/one/metrics.jsonl"]) == ["one"] and names_of([folder + "/one", folder + "/one/"]) == ["one", "one"]


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
