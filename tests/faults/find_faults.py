"""Plants faults in a copy of the project, one at a time, and sees whether zero_prove, or the tests, find them.

Each fault is a patch: prove/*.patch are for zero_prove, tests/*.patch are quieter ones for the test programs, which also get the
others. Lines above the patch say what it does, with which configuration of this folder it shows, and which options or tests are run.

usage: find_faults.py [--tests] [-k PATTERN] [--tree FOLDER] [--preset release] [--jobs 2]
       find_faults.py --check
Exits 1 when a fault was not found, with --check when one can be planted no more: its patch has to follow the sources. The copy (build/faults/tree; --tree names another one, which must be clean) is a clone of
what is committed here, and is built once before the first fault: that takes as long as a build does.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
APPLY = ["git", "apply", "--recount", "-C1"]


class Fault:
    def __init__(self, path):
        with open(path) as file:
            text = file.read()
        self.path, self.name = path, os.path.basename(path).removesuffix(".patch")
        head = text[:text.index("diff --git")]
        self.field = dict(re.findall(r"^(\w+): (.*)$", head, re.M))


def run(command, cwd, seconds=1800):
    """(exit code, what it said)"""
    environment = {**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
    if os.geteuid() == 0:
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=seconds, env=environment)
        return done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        return 124, f"no end after {seconds} s"


class Tree:
    def __init__(self, args):
        self.folder = os.path.abspath(args.tree or os.path.join(ROOT, "build", "faults", "tree"))
        self.build = os.path.join(self.folder, "build", args.preset)
        self.jobs = args.jobs
        if not os.path.isdir(self.folder):
            self.must(["git", "clone", "--quiet", ROOT, self.folder], ROOT)
        if not os.path.isdir(self.build):
            libtorch = re.search(r"LIBTORCH_ROOT:PATH=(.*)", open(os.path.join(ROOT, "build", args.preset, "CMakeCache.txt")).read())
            self.must(["cmake", "--preset", args.preset, "-D", f"LIBTORCH_ROOT={libtorch.group(1)}"], self.folder)
        if self.must(["git", "status", "--porcelain", "--untracked-files=no"], self.folder).strip():
            sys.exit(f"{self.folder}: has changes; faults are planted in a clean copy")

    def must(self, command, cwd):
        code, said = run(command, cwd, 7200)
        if code:
            sys.exit(f"{' '.join(command)}: exit code {code}\n{said[-2000:]}")
        return said

    def make(self, target):
        return run(["ninja", "-C", self.build, f"-j{self.jobs}", target], self.folder, 7200)

    def plant(self, fault):
        """Why it cannot be; empty: it is."""
        code, said = run([*APPLY, fault.path], self.folder)
        return said if code else ""

    def clear(self):
        self.must(["git", "checkout", "--quiet", "--", "."], self.folder)


def proved(tree, fault):
    """(found, what told)"""
    code, said = tree.make("zero_prove")
    if code:
        return False, "does not compile: " + said[-600:]
    with tempfile.TemporaryDirectory() as folder:
        verdicts = os.path.join(folder, "verdicts.json")
        command = [os.path.join(tree.build, "bin", "zero_prove"), os.path.join("tests", "faults", fault.field["Configuration"] + ".toml"),
                   "--first", "--json", verdicts, *fault.field.get("Options", "").split()]
        code, said = run(command, tree.folder)
        if code != 1 or not os.path.exists(verdicts):
            return False, f"exit code {code}: {said[-300:]}"
        with open(verdicts) as file:
            bad = [v for v in json.load(file)["layouts"] if v["verdict"] in ("DIFFERENT", "FAILED")][0]
    part = bad.get("parts")
    told = f"step {part['step']}, {part['phase']}{', ' + part['tensor'] if part['tensor'] else ''}: {part['why']}" if part else bad.get("words", "")
    return True, f"`{bad['layout']}`: {told}"


def tested(tree, fault):
    """Tests: PROGRAM FILTER; PROGRAM SCRIPT.py:CHECK; ... in the order in which they are tried. (found, the first test that failed)"""
    for test in fault.field["Tests"].split(";"):
        program, *words = test.split()
        code, said = tree.make(program)
        if code:
            return False, "does not compile: " + said[-600:]
        binary = os.path.join(tree.build, "bin", program)
        if words and ".py" in words[0]:
            for needed in words[1:]:
                tree.make(needed)
            script, _, check = words[0].partition(":")
            command = [sys.executable, os.path.join("tests", "programs", script), os.path.join(tree.build, "bin"), os.path.join("tests", "data"), "-k", check]
        elif words and words[0].isdigit():
            command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", words[0], binary]
        else:
            command = [binary, "--gtest_brief=1", "--gtest_fail_fast", *([f"--gtest_filter={words[0]}"] if words else [])]
        code, said = run(command, tree.folder)
        if code == 124:
            return False, f"{program}: {said}"
        if code:
            failed = re.search(r"\[  FAILED  \] (\S+)", said) or re.search(r"^(check_\w+) failed", said, re.M)
            return True, failed.group(1) if failed else f"{program}: exit code {code}"
    return False, "no test failed"


def faults_of(folder, pattern):
    folder = os.path.join(HERE, folder)
    return [Fault(os.path.join(folder, name)) for name in sorted(os.listdir(folder)) if name.endswith(".patch") and re.search(pattern, name)]


def check():
    """The exit code."""
    faults = faults_of("prove", "") + faults_of("tests", "")
    stale = [fault for fault in faults if run([*APPLY, "--check", fault.path], ROOT)[0]]
    for fault in stale:
        print(f"{os.path.relpath(fault.path, ROOT)}: can be planted no more; plant it by hand, and write its patch anew")
    print(f"{len(faults) - len(stale)} of {len(faults)} can be planted")
    return int(bool(stale) or not faults)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", action="store_true", help="these and the quieter ones, against the tests")
    parser.add_argument("-k", default="", help="only faults whose name this regular expression matches")
    parser.add_argument("--tree", default="", help="the copy")
    parser.add_argument("--preset", default="release")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--check", action="store_true", help="only see whether all can be planted")
    args = parser.parse_args()
    if args.check:
        sys.exit(check())
    faults = faults_of("prove", args.k) + (faults_of("tests", args.k) if args.tests else [])
    tree = Tree(args)
    missed = 0
    for fault in faults:
        begin = time.time()
        try:
            stale = tree.plant(fault)
            found, told = (False, "cannot be planted: " + stale) if stale else (tested if args.tests else proved)(tree, fault)
        finally:
            tree.clear()
        missed += not found
        print(f"| {fault.name} | {'found' if found else 'NOT FOUND'} | {told.strip()} | {time.time() - begin:.0f} s |", flush=True)
    print(f"{len(faults) - missed} of {len(faults)} found")
    sys.exit(missed > 0 or not faults)


if __name__ == "__main__":
    main()
