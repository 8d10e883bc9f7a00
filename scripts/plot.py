"""Plots loss, learning rate, gradient norm and tokens per second of runs over their steps, or the bytes of `zero_bench memory --json` as stacked
bars. scripts/plot calls it."""
import argparse
import json
import os
import sys


def pyplot():
    """matplotlib, which is wanted for drawing alone."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot
    return matplotlib.pyplot


def read_run(path):
    """The objects of an output directory or a metrics.jsonl file; a torn last line does not count."""
    file = os.path.join(path, "metrics.jsonl") if os.path.isdir(path) else path
    objects = []
    with open(file) as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith("\n"):
                continue
            try:
                objects.append(json.loads(line))
                objects[-1]["step"]
            except (ValueError, TypeError, KeyError):
                raise ValueError(f"{file}:{number}: is no object of a run's metrics; name a run's output directory or its metrics.jsonl") from None
    if not objects:
        raise ValueError(f"{file} holds no step yet")
    return objects


def names_of(paths):
    """A name for each run: the end of its directory's path, as short as no other run has it ("a/run", "b/run")."""
    parts = [os.path.abspath(path if os.path.isdir(path) else os.path.dirname(path) or ".").split(os.sep) for path in paths]
    others = lambda run: [other for other in parts if other != run]

    def name(run):
        ends = (run[-length:] for length in range(1, len(run)))
        return os.sep.join(next((end for end in ends if all(other[-len(end):] != end for other in others(run))), run))

    return [name(run) for run in parts]


def series(objects, key):
    """Steps and values where the key has one; a value that was not finite is null and leaves a gap."""
    pairs = [(o["step"], o[key] if o[key] is not None else float("nan")) for o in objects if key in o]
    return [p[0] for p in pairs], [p[1] for p in pairs]


CATEGORIES = ["parameters", "gradients", "optimizer", "buffers", "activations", "other"]


def read_memory(path):
    """The objects of `zero_bench memory --json`; None where the file holds something else."""
    if os.path.isdir(path):
        return None
    with open(path) as lines:
        try:
            objects = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]
        except ValueError:
            return None
    return objects if objects and all(o.get("benchmark") == "memory" for o in objects) else None


def plot_memory(rows, out):
    """One pair of bars a row, predicted and measured (hatched), stacked by category; the paper's formula as a line across."""
    plt = pyplot()
    figure, axis = plt.subplots(figsize=(max(8, 0.8 * len(rows)), 6))
    mib, width = 2.0**20, 0.38
    colors = plt.get_cmap("tab10").colors
    for x, row in enumerate(rows):
        for side, kind in ((-1, "predicted"), (1, "measured")):
            bottom = 0.0
            for color, category in zip(colors, CATEGORIES):
                bytes_ = row.get(kind, {}).get("peak", {}).get(category, 0) / mib
                axis.bar(x + side * width / 2, bytes_, width, bottom=bottom, color=color, hatch="//" if side > 0 else None, edgecolor="white",
                         linewidth=0.3, label=category if x == 0 and side < 0 else None)
                bottom += bytes_
        states = sum(row["paper"].values()) / mib
        axis.hlines(states, x - width, x + width, color="black", linewidth=1.5, label="ZeRO paper: states" if x == 0 else None)
    axis.set_xticks(range(len(rows)), [f"{r['world']} ranks\nstage {r['stage']}" for r in rows], fontsize=8)
    axis.set_ylabel("MiB per rank, largest of each category while training")
    models = sorted({f"{os.path.basename(os.path.normpath(r['model']))}, {r['dtype']}, {r['batch']} x {r['seq']} tokens" for r in rows})
    axis.set_title("; ".join(models) + "\nplain: predicted, hatched: measured", fontsize=10)
    axis.grid(axis="y", alpha=0.3)
    axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(out, dpi=120)


def draw_loss(axis, runs):
    """A line a run, with the runs' names; returns the lines."""
    lines = []
    for name, objects in runs:
        lines += axis.plot(*series(objects, "loss"), label=name, linewidth=1)
        if any("validation_loss" in o for o in objects):
            axis.plot(*series(objects, "validation_loss"), "o--", color=lines[-1].get_color(), label=f"{name}, validation", markersize=4)
    axis.set_ylabel("loss")
    axis.legend()
    return lines


def plot_loss(runs, out):
    figure, axis = pyplot().subplots(figsize=(8, 5))
    draw_loss(axis, runs)
    axis.set_xlabel("step")
    axis.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(out, dpi=120)


def plot_runs(runs, out):
    figure, axes = pyplot().subplots(4, 1, sharex=True, figsize=(8, 11), height_ratios=[2, 1, 1, 1])
    for (name, objects), line in zip(runs, draw_loss(axes[0], runs)):
        axes[1].plot(*series(objects, "lr"), color=line.get_color(), linewidth=1)
        for key, style in (("d", ":"), ("d_lr", "--")):  # of Prodigy, whose rate is d x lr
            if any(key in o for o in objects):
                axes[1].plot(*series(objects, key), style, color=line.get_color(), label=f"{name}, {key.replace('_', ' x ')}", linewidth=1)
                axes[1].set_yscale("log")
                axes[1].legend(fontsize=8)
        axes[2].plot(*series(objects, "grad_norm"), color=line.get_color(), linewidth=1)
        axes[3].plot(*series(objects, "tokens_per_second"), color=line.get_color(), linewidth=1)
    for axis, label in zip(axes[1:], ("learning rate", "gradient norm", "tokens/s")):
        axis.set_ylabel(label)
    for axis in axes:
        axis.grid(alpha=0.3)
    axes[3].set_xlabel("step")
    figure.tight_layout()
    figure.savefig(out, dpi=120)


def what_fails(error):
    if not isinstance(error, OSError):
        return str(error)
    return f"{error.filename}: {error.strerror}; name a run's output directory or its metrics.jsonl"


def main():
    parser = argparse.ArgumentParser(prog="scripts/plot", description=__doc__)
    parser.add_argument("runs", nargs="+", help="output directories or metrics.jsonl files; or one file of zero_bench memory --json")
    parser.add_argument("-o", "--out", help="default: plot.png in the folder of the first run's metrics.jsonl; the ending chooses the format, as in .svg")
    parser.add_argument("--loss", action="store_true", help="plot only the loss of runs")
    parser.add_argument("--only-read", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    try:
        memory = read_memory(args.runs[0]) if len(args.runs) == 1 else None
        if memory:
            if args.only_read:
                return
            out = args.out or os.path.splitext(args.runs[0])[0] + ".png"
            plot_memory(memory, out)
            return print(out)
        runs = list(zip(names_of(args.runs), [read_run(path) for path in args.runs]))
    except (OSError, ValueError) as error:
        print(f"plot: {what_fails(error)}", file=sys.stderr)
        sys.exit(2)
    if args.only_read:
        return
    out = args.out or os.path.join(args.runs[0] if os.path.isdir(args.runs[0]) else os.path.dirname(args.runs[0]) or ".", "plot.png")
    (plot_loss if args.loss else plot_runs)(runs, out)
    print(out)


if __name__ == "__main__":
    main()
