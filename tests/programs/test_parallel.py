"""Runs zero_train on the axes of [parallel] as a user does: validated, stopped, killed, resumed on other axes, refused.

usage: test_parallel.py BIN TESTS_DATA [-k NAME]        exits 1 when something is wrong
"""
import os
import re
import shutil
import signal
import subprocess

from checks import arguments, environment, run_checks
from test_checkpoints import Place, ranks_of, wait_for_steps

FP32 = ("--set", "training.precision=fp32", "--set", "zero.stage=1", "--set", "training.steps=12", "--set", "checkpoint.interval=4",
        "--set", "data.validation=[\"tokens.bin\"]", "--set", "training.validation_interval=6")
LORA = ("--set", "lora.r=2", "--set", "optimizer.lr=0.01")
PIPELINE = ("--set", "parallel.pipeline=2")
LAYOUTS = [(2, PIPELINE), (2, (*PIPELINE, "--set", "parallel.schedule=gpipe")), (4, (*PIPELINE, "--set", "zero.stage=2")),
           (4, (*PIPELINE, "--set", "parallel.tensor=2")), (4, (*PIPELINE, "--set", "parallel.context=2", "--set", "checkpoint.asynchronous=true"))]


def expect_close(found, expected):
    assert len(found) == len(expected), (found, expected)
    for one, other in zip(found, expected):
        for key in ("loss", "grad_norm", "validation_loss"):
            assert (key in one) == (key in other), (one, other)
            if key in one:
                assert abs(one[key] - other[key]) < 1e-4 * abs(other[key]), (key, one, other)


def check_trains_as_one_rank(place):
    for options in ((), LORA):
        code, said = place.run(*FP32, *options, ranks=1, out="one")
        assert code == 0, said
        expected = place.metrics("one")
        assert any("validation_loss" in line for line in expected), expected
        for ranks, layout in LAYOUTS:
            code, said = place.run(*FP32, *options, *layout, ranks=ranks, out="out")
            assert code == 0 and "pipeline: 2 stages: units " in said, (layout, said)
            expect_close(place.metrics(), expected)
            kind = "adapter" if options else "model"
            assert sorted(os.listdir(place.path("out", kind))) == sorted(os.listdir(place.path("one", kind))), layout
            shutil.rmtree(place.path("out"))
        shutil.rmtree(place.path("one"))


def check_goes_on_elsewhere(place):
    """A signal to a rank of the second stage stops the run with a checkpoint; other layouts go on with it."""
    code, said = place.run(*FP32, "--set", "training.steps=200", ranks=1, out="one")
    assert code == 0, said
    process = place.start(*FP32, "--set", "training.steps=200", *PIPELINE, ranks=2)
    assert wait_for_steps(place, process, 5), place.wait(process)
    os.kill(ranks_of(process)[-1], signal.SIGUSR1)
    code, said = place.wait(process)
    assert code == 75, (code, said)
    code, said = place.run(*FP32, "--set", "training.steps=200", "--set", "parallel.tensor=2", "--resume", ranks=2)
    assert code == 0, said
    expect_close(place.metrics(), place.metrics("one"))


def check_bits_of_one_rank(place):
    """job.reproducible: over three ranks and over the stages of a pipeline as well."""
    one_curve = ("--set", "job.reproducible=ranks", "--set", "training.global_batch_size=12", "--set", "training.steps=6")
    code, said = place.run(*one_curve, ranks=1, out="one")
    assert code == 0, said
    for ranks, layout in ((3, ()), (2, PIPELINE), (6, (*PIPELINE, "--set", "zero.stage=2"))):
        code, said = place.run(*one_curve, *layout, ranks=ranks)
        assert code == 0, said
        place.expect_same("out", "one")
        shutil.rmtree(place.path("out"))


def check_ends_with_a_killed_stage(place):
    process = place.start(*FP32, "--set", "training.steps=5000", *PIPELINE, "--set", "comm.deadline_seconds=10", ranks=2)
    assert wait_for_steps(place, process, 3), place.wait(process)
    os.kill(ranks_of(process)[-1], signal.SIGKILL)
    code, said = place.wait(process)
    assert code not in (0, 75), (code, said)


def check_refusals(place):
    """The message names the rule and changes, each of which is accepted."""
    for ranks, options, pieces in ((4, ("zero.stage=3", "parallel.pipeline=2"), ("zero.stage=3", "parallel.regather = true")),
                                   (3, ("parallel.pipeline=2",), ("must divide the number of ranks, 3", "2 ranks")),
                                   (4, ("parallel.pipeline=4",), ("needs 4 blocks", "the model has 3")),
                                   (2, ("parallel.tensor=2", "job.reproducible=ranks"), ("parallel.tensor=2", "job.reproducible"))):
        settings = [word for setting in options for word in ("--set", setting)]
        code, said = place.run("--set", "training.steps=1", *settings, ranks=ranks, out="refused")
        assert code == 2 and all(piece in said for piece in pieces) and said.count("error: ") == 1, (options, code, said)
        assert not os.path.exists(place.path("refused")), options
        for remedy in re.search(r"; legal here: (.*)", said).group(1).split(", or "):
            words = remedy.split()
            change = ["--ranks", words[0]] if words[0].isdigit() else ["--ranks", str(ranks), *words]
            done = subprocess.run([place.bin + "/zero_train", "config.toml", "--dry-run", *settings, *change], cwd=place.folder, capture_output=True, text=True,
                                  env=environment())
            assert done.returncode == 0, (options, remedy, done)


def main():
    args = arguments(__doc__)
    run_checks(args, globals(), lambda check, folder: check(Place(folder, args.bin, args.data)))


if __name__ == "__main__":
    main()
