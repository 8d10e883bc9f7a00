"""A short one of what tests/soak/soak.py does for hours, and what it judges by.

usage: test_soak.py BIN [-k NAME] [--seconds N]        exits 1 when something is wrong, 77 where no file system can be mounted
"""
import argparse
import os
import subprocess
import sys
import time

from checks import environment, run_checks

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "soak"))
import samples


def check_samples(folder, args):
    """A number that another process has had is another process."""
    begins = iter([7, 7, 8, 8])
    begun, samples.begun = samples.begun, lambda pid: next(begins, 8)
    try:
        with samples.Sampler(os.getpid()) as sampler:
            end = time.monotonic() + 20
            while sum(map(len, sampler.series.values())) < 4 and time.monotonic() < end:
                time.sleep(0.1)
    finally:
        samples.begun = begun
    assert [len(points) >= 2 for points in sampler.series.values()] == [True, True], sampler.series
    assert {key[:2] for key in sampler.series} == {("the script", os.getpid())}, sampler.series
    assert samples.begun(os.getpid()) > samples.begun(1) and samples.begun(1 << 30) is None


def check_soak(folder, args):
    soak = [sys.executable, os.path.join(HERE, "..", "soak", "soak.py"), args.bin, "--seconds", str(args.seconds), "--steps", "250", "--every", "1.5", "--variants", "1",
            "--ranks", "2", "--seed", "3"]
    done = subprocess.run(soak, capture_output=True, text=True, timeout=240, env=environment(TMPDIR=folder))
    if done.returncode == 77:
        sys.exit(77)
    assert done.returncode == 0, done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=os.path.abspath)
    parser.add_argument("-k", default="")
    parser.add_argument("--seconds", type=int, default=25)
    args = parser.parse_args()
    run_checks(args, globals(), lambda check, folder: check(folder, args))


if __name__ == "__main__":
    main()
