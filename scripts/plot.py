"""Draws loss, learning rate and gradient norm of runs over their steps; called by scripts/plot."""
import argparse
import json
import os
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def read_run(path):
    """(name, objects) of an output directory or a metrics.jsonl file; a torn last line does not count."""
    file = os.path.join(path, "metrics.jsonl") if os.path.isdir(path) else path
    objects = []
    with open(file) as lines:
        for line in lines:
            if line.endswith("\n"):
                objects.append(json.loads(line))
    if not objects:
        raise ValueError(f"{file} holds no step yet")
    return os.path.basename(os.path.normpath(os.path.dirname(os.path.abspath(file)))), objects


def series(objects, key):
    """Steps and values where the key has one; a value that was not finite is null and leaves a gap."""
    pairs = [(o["step"], o[key] if o[key] is not None else float("nan")) for o in objects if key in o]
    return [p[0] for p in pairs], [p[1] for p in pairs]


def main():
    parser = argparse.ArgumentParser(prog="scripts/plot", description=__doc__)
    parser.add_argument("runs", nargs="+", help="output directories or metrics.jsonl files")
    parser.add_argument("-o", "--out", help="default: plot.png beside the first run's metrics.jsonl")
    args = parser.parse_args()
    try:
        runs = [read_run(path) for path in args.runs]
    except (OSError, ValueError) as error:
        sys.exit(f"scripts/plot: {error}")
    out = args.out or os.path.join(args.runs[0] if os.path.isdir(args.runs[0]) else os.path.dirname(args.runs[0]) or ".", "plot.png")

    figure, axes = plt.subplots(3, 1, sharex=True, figsize=(8, 9), height_ratios=[2, 1, 1])
    for name, objects in runs:
        line, = axes[0].plot(*series(objects, "loss"), label=name, linewidth=1)
        if any("validation_loss" in o for o in objects):
            axes[0].plot(*series(objects, "validation_loss"), "o--", color=line.get_color(), label=f"{name}, validation", markersize=4)
        axes[1].plot(*series(objects, "lr"), linewidth=1)
        axes[2].plot(*series(objects, "grad_norm"), linewidth=1)
    for axis, label in zip(axes, ("loss", "learning rate", "gradient norm")):
        axis.set_ylabel(label)
        axis.grid(alpha=0.3)
    axes[0].legend()
    axes[2].set_xlabel("step")
    figure.tight_layout()
    figure.savefig(out, dpi=120)
    print(out)


if __name__ == "__main__":
    main()
