#!/usr/bin/env python3
"""Lets zero_prove judge random configurations, those of layouts.py without job.reproducible: no layout of a sound program may be told to be
different, however the rounding falls.

usage: proofs.py BIN [--first 1] [--count 20] [--ranks 4] [--only LAYOUT ...]

A configuration follows from its number alone. One line for each with the layout that came nearest to a bound, and what that was, or
what was told to be different; one for all at the end. Exits 1 where a layout differs or fails.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

from layouts import PATIENCE_SECONDS, Place, environment, settings_of


def settings_to_prove(number):
    """Without the keys that go with reproducible sums, and what a proof leaves out anyway."""
    settings = settings_of(random.Random(number))
    return {key: value for key, value in settings.items() if not key.startswith(("job.", "checkpoint.")) and "validation" not in key}


def words_of(layout):
    return f"{layout['layout']}: {layout['verdict']} from {layout['against']}: {layout.get('parts') or layout.get('words', '')}"


def prove(place, number, args):
    """Whether all agree."""
    command = [os.path.join(args.bin, "zero_prove"), "config.toml", "--ranks", str(args.ranks), "--json", "verdicts.json"]
    for name in args.only:
        command += ["--only", name]
    for key, value in settings_to_prove(number).items():
        command += ["--set", f"{key}={json.dumps(value)}"]
    done = subprocess.run(command, cwd=place.folder, capture_output=True, text=True, timeout=20 * PATIENCE_SECONDS, env=environment())
    if "error: " in done.stderr:  # of the reference, or before it
        print(f"{number}: exit code {done.returncode}: {done.stderr.strip()}; {settings_to_prove(number)}", flush=True)
        return False
    with open(os.path.join(place.folder, "verdicts.json")) as file:
        layouts = json.load(file)["layouts"]
    wrong = [layout for layout in layouts if layout["verdict"] in ("DIFFERENT", "FAILED")]
    for layout in wrong:
        print(f"{number}: {words_of(layout)}; {settings_to_prove(number)}", flush=True)
    if done.returncode == 0:
        nearest = max(layouts, key=lambda layout: layout["of_bound"])
        print(f"{number}: {100 * nearest['of_bound']:.0f} % ({nearest['layout']}: {nearest['nearest']})", flush=True)
    return done.returncode == 0 and not wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=os.path.abspath)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--only", action="append", default=[])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Place(folder, os.path.join(args.bin, "zero_train"))
        with open(os.path.join(folder, "config.toml"), "w") as file:
            file.write('[job]\noutput_dir = "out"\n')
        agree = [prove(place, number, args) for number in range(args.first, args.first + args.count)]
    print(f"{sum(agree)} of {len(agree)} configurations agree in all their layouts")
    return 0 if all(agree) else 1


if __name__ == "__main__":
    sys.exit(main())
