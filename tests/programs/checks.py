"""What the tests of programs share: how a run is started, and the loop over a file's checks."""
import argparse
import os
import sys
import tempfile
import time
import traceback


def mpirun(ranks):
    """The beginning of a command that starts so many ranks, on any machine, root or not."""
    return ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks)] + (["--allow-run-as-root"] if os.getuid() == 0 else [])


def environment(**more):
    return {**os.environ, "OMP_NUM_THREADS": "1", **more}


def arguments(description):
    """BIN TESTS_DATA [-k NAME], of which the paths are absolute."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=os.path.abspath)
    parser.add_argument("data", type=os.path.abspath)
    parser.add_argument("-k", default="", help="only checks whose name holds this")
    return parser.parse_args()


def run_checks(args, names, run):
    """Calls run(check, folder) for the functions check_* of `names` (a file's globals()) in their order, each with a folder of its
    own, and ends the program: with 1 when one failed, or none was chosen."""
    checks = [check for name, check in names.items() if name.startswith("check_") and args.k in name]
    failed = 0
    for check in checks:
        begin = time.time()
        try:
            with tempfile.TemporaryDirectory(prefix="zero-check-") as folder:
                run(check, folder)
            print(f"{check.__name__} ok, {time.time() - begin:.1f} s", flush=True)
        except Exception:
            failed += 1
            print(f"{check.__name__} failed:\n{traceback.format_exc()}", flush=True)
    print(f"{len(checks)} checks, {failed} failed")
    sys.exit(failed > 0 or not checks)
