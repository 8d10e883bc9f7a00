"""Runs zero_train with job.reproducible = "ranks" on real ranks: curves, models and checkpoints' contents must be one run's to the
bit, whatever the layout; where it is not asked for they are not, or the test would show nothing.

usage: test_reproducible.py BIN TESTS_DATA [-k NAME]        exits 1 when something is wrong
"""
import subprocess

from checks import arguments, environment, mpirun, run_checks
from test_checkpoints import CONFIG, Place

SAME = {**CONFIG, "job": {"output_dir": "out", "reproducible": "ranks"},
        "training": {"steps": 12, "seq_len": 24, "global_batch_size": 24, "precision": "bf16", "device": "cpu", "validation_interval": 5},
        "data": {"train": ["tokens.bin"], "validation": ["tokens.bin"]},
        "checkpoint": {"interval": 6}}
LAYOUTS = [  # ranks, threads, what is set
    (2, 1, ["zero.stage=3"]),
    (4, 1, ["zero.stage=1", "training.local_batch_size=2"]),
    (4, 1, ["zero.stage=3", "zero.shard_degree=2", "activation_checkpoint.mode=full"]),
    (8, 1, ["zero.stage=2", "offload.optimizer=nvme", "offload.nvme_dir=disk"]),
    (8, 1, ["zero.stage=3", "comm.shared_memory=off"]),
    (1, 2, ["zero.stage=0"]),
]


def run(place, ranks, threads, settings, out, *options):
    command = [*mpirun(ranks), place.bin + "/zero_train", "config.toml", "--set", f"job.output_dir={out}", *options]
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run(command, cwd=place.folder, capture_output=True, text=True, timeout=120,
                          env=environment(OMP_NUM_THREADS=str(threads)))
    assert done.returncode == 0, (ranks, settings, done.stdout + done.stderr)


def check_layouts(place, args):
    place.config(SAME)
    run(place, 1, 1, ["zero.stage=0"], "one")
    for number, (ranks, threads, settings) in enumerate(LAYOUTS):
        run(place, ranks, threads, settings, f"out{number}")
        place.expect_same(f"out{number}", "one")
    run(place, 4, 1, ["job.reproducible=none"], "usual")
    assert place.metrics("usual") != place.metrics("one") and place.result("usual") != place.result("one")


def check_rows(place, args):
    """Two sequences as one, and a validation whose last rows fall on ranks otherwise."""
    place.config(SAME)
    with open(place.path("tokens.bin"), "rb") as file, open(place.path("held_out.bin"), "wb") as held_out:
        held_out.write(file.read(2 * (91 * 24 + 1)))
    settings = ["job.reproducible_rows=2", 'data.validation=["held_out.bin"]']
    run(place, 1, 1, [*settings, "zero.stage=0"], "one")
    assert any("validation_loss" in line for line in place.metrics("one"))
    for ranks, stage in [(2, 1), (4, 3)]:
        run(place, ranks, 1, [*settings, f"zero.stage={stage}"], f"on{ranks}")
        place.expect_same(f"on{ranks}", "one")


def check_resumption(place, args):
    place.config(SAME)
    run(place, 1, 1, ["zero.stage=0"], "one")
    for number, (before, after) in enumerate([((4, "3"), (2, "0")), ((1, "0"), (8, "3"))]):
        out = f"moved{number}"
        run(place, before[0], 1, [f"zero.stage={before[1]}", "checkpoint.keep=5"], out)
        for step in place.checkpoints(out):
            if step != "step-00000006":
                subprocess.run(["rm", "-r", place.path(out, "checkpoints", step)], check=True)
        run(place, after[0], 1, [f"zero.stage={after[1]}"], out, "--resume")
        place.expect_same(out, "one")


if __name__ == "__main__":
    args = arguments(__doc__)
    run_checks(args, globals(), lambda check, folder: check(Place(folder, args.bin, args.data), args))
