"""What scripts make of wrong arguments: refused with one line before anything is installed, built or run.

usage: test_scripts.py PROJECT_ROOT BIN [-k NAME]        exits 1 when something is wrong
"""
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
