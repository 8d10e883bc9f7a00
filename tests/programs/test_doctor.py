"""zero_doctor: what it says of this machine, and of one that lacks mpirun, shared memory or a folder.

usage: test_doctor.py BIN TESTS_DATA [-k NAME]        exits 1 when something is wrong
"""
import json
import os
import re
import shutil
import subprocess

from checks import arguments, environment, mount_apart, mpirun, run_checks

SUBJECTS = ["processor", "cores", "memory", "shared memory", "io_uring", "disk", "GPUs", "NCCL", "mpirun", "two ranks"]


def doctor(folder, *words, code=0, **env):
    done = subprocess.run([args.bin + "/zero_doctor", *words], cwd=folder, capture_output=True, text=True, timeout=120, env=environment(**env))
    assert done.returncode == code, done
    return done.stdout


def findings(folder, *words, code=0, **env):
    told = json.loads(doctor(folder, "--json", *words, code=code, **env))
    assert [one["subject"] for one in told["findings"]] == SUBJECTS, told
    assert told["program"].startswith("zero_doctor ") and "LibTorch" in told["program"], told
    for one in told["findings"]:
        assert bool(one["remedy"]) == (one["verdict"] != "ok") and one["words"], one
    return {one["subject"]: one for one in told["findings"]}


def path_with(folder, mpirun_script=None, interpreter="/bin/sh"):
    """A PATH of the folder alone, which has a shell and this script as mpirun."""
    os.symlink(shutil.which("sh"), os.path.join(folder, "sh"))
    if mpirun_script:
        path = os.path.join(folder, "mpirun")
        with open(path, "w") as file:
            file.write(f"#!{interpreter}\n" + mpirun_script)
        os.chmod(path, 0o755)
    return folder


def check_this_machine(folder):
    lines = doctor(folder).splitlines()
    assert lines[0].startswith("zero_doctor ") and lines[-1].startswith("ok       two ranks"), lines
    told = findings(folder)
    assert told["mpirun"]["verdict"] == told["two ranks"]["verdict"] == "ok", told
    assert "2 ranks agree on a sum" in told["two ranks"]["words"], told
    assert os.listdir(folder) == [], "the trial of the disk left files"


def check_processor_without_avx2(folder):
    """Every program says what it needs, where it would die of an illegal instruction."""
    for program in sorted(os.listdir(args.bin)):
        if re.fullmatch("zero_[a-z]+", program):
            with open(os.path.join(args.bin, program), "rb") as file:
                assert b"error: this processor has no " in file.read(), program
    emulator = shutil.which("qemu-x86_64") or shutil.which("qemu-x86_64-static")
    if emulator and os.uname().machine == "x86_64":
        done = subprocess.run([emulator, "-cpu", "Westmere", args.bin + "/zero_doctor"], cwd=folder, capture_output=True, text=True, timeout=120, env=environment())
        assert done.returncode == 2 and done.stderr.startswith("error: this processor has no AVX, and the programs of zero need AVX2") and not done.stdout, done


def check_missing_mpirun(folder):
    told = findings(folder, code=1, PATH=path_with(folder))
    assert told["mpirun"]["verdict"] == "fault" and "openmpi-bin" in told["mpirun"]["remedy"], told
    assert told["two ranks"]["verdict"] == "unknown", told


def check_foreign_mpirun(folder):
    told = findings(folder, code=1, PATH=path_with(folder, "echo 'mpirun (Open MPI) 9.9.9'\n"))
    assert told["mpirun"]["verdict"] == "fault" and "do not match" in told["mpirun"]["words"], told


def check_ranks_that_fail(folder):
    script = "[ \"$1\" = --version ] && exec " + shutil.which("mpirun") + " --version\necho 'error: no way to the other rank' >&2; exit 7\n"
    told = findings(folder, code=1, PATH=path_with(folder, script))
    assert told["mpirun"]["verdict"] == "ok", told
    assert told["two ranks"]["words"] == "exit code 7: error: no way to the other rank", told


def check_mpirun_that_cannot_be_executed(folder):
    told = findings(folder, code=1, PATH=path_with(folder, "exit 0\n", "/nowhere/sh"))
    assert told["mpirun"]["verdict"] == "fault" and "/mpirun: cannot be executed: No such file" in told["mpirun"]["words"] and "openmpi-bin" in told["mpirun"]["remedy"], told
    assert told["two ranks"]["verdict"] == "unknown" and "mpirun: cannot be executed" in told["two ranks"]["words"], told


def check_exit_code_of_a_missing_program(folder):
    """127 is an answer of mpirun, which was executed."""
    script = "[ \"$1\" = --version ] && exec " + shutil.which("mpirun") + " --version\nexit 127\n"
    told = findings(folder, code=1, PATH=path_with(folder, script))
    assert told["mpirun"]["verdict"] == "ok", told
    assert told["two ranks"]["verdict"] == "fault" and told["two ranks"]["words"] == "exit code 127: it printed nothing", told


def check_little_shared_memory(folder):
    mount_apart()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", "/dev/shm"], check=True)
    told = findings(folder)
    assert told["shared memory"]["verdict"] == "warning" and "--shm-size" in told["shared memory"]["words"], told


def check_unknown_folder(folder):
    told = findings(folder, "--folder", "/proc/self")
    assert told["disk"]["verdict"] in ("unknown", "warning"), told
    done = subprocess.run([args.bin + "/zero_doctor", "--folder", "nowhere/at/all"], cwd=folder, capture_output=True, text=True, timeout=60, env=environment())
    assert done.returncode == 2 and "--folder nowhere/at/all: is no folder here" in done.stderr, done


def check_refusals(folder):
    done = subprocess.run([*mpirun(2), args.bin + "/zero_doctor"], cwd=folder, capture_output=True, text=True, timeout=60, env=environment())
    assert done.returncode == 2 and "without mpirun" in done.stderr, done


args = arguments(__doc__)
run_checks(args, globals(), lambda check, folder: check(folder))
