"""Runs the programs of examples/cpp and compares what they print with expected.txt beside each, and what resnet18 computes with
PyTorch's numbers.

usage: test_examples.py BIN_DIR TESTS_DATA [-k NAME]
"""
import json
import os
import re
import shutil
import subprocess

import checks
from checks import compare, read_safetensors

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
DIGITS = os.path.join(EXAMPLES, "data", "digits")


def run(ranks, command, folder, code=0):
    """What so many processes print; ranks 0: one without mpirun."""
    start = checks.mpirun(ranks) if ranks else []
    done = subprocess.run(start + command, cwd=folder, env=checks.environment(), capture_output=True, text=True, timeout=280)
    assert (done.returncode == 0) == (code == 0), (command, done.returncode, done.stdout, done.stderr)
    return done.stdout + (done.stderr if code else "")


def same_lines(found, expected, numbers):
    """The same words, and numbers that differ by this share at most: other processors round otherwise."""
    assert NUMBER.sub("#", found).split() == NUMBER.sub("#", expected).split(), (found, expected)
    for a, b in zip(NUMBER.findall(found), NUMBER.findall(expected)):
        assert abs(float(a) - float(b)) <= numbers * max(abs(float(b)), 1), (a, b, found, expected)


def expected_of(example):
    with open(os.path.join(EXAMPLES, "cpp", example, "expected.txt")) as file:
        return file.read()


def check_own_loop(args, folder):
    for ranks in (0, 1, 2, 3):
        same_lines(run(ranks, [args.bin + "/own_loop", DIGITS], folder), expected_of("own_loop"), 0.02)
    assert len(read_safetensors(os.path.join(folder, "own_loop.safetensors"))) == 4


def check_errors(args, folder):
    """Told once and with one exit code, with World::run() and without: what all processes throw, and what one throws."""
    for ranks in (0, 1, 3):
        for program in ("own_loop", "airbench", "resnet18", "dit", "lora_own_model", "gan"):
            start = checks.mpirun(ranks) if ranks else []
            done = subprocess.run(start + [args.bin + "/" + program, "/nowhere"], cwd=folder, env=checks.environment(), capture_output=True, text=True, timeout=100)
            assert done.returncode == 2, (program, ranks, done.returncode, done.stderr)
            told = [line for line in done.stderr.splitlines() if "/nowhere/data_batch_1.bin" in line]
            assert len(told) == 1 and told[0].startswith("error: ") and "terminate called" not in done.stderr, (program, ranks, done.stderr)


def check_from_ddp(args, folder):
    for ranks in (0, 2, 3):
        same_lines(run(ranks, [args.bin + "/from_ddp"], folder), expected_of("from_ddp"), 0.002)
    with open(os.path.join(EXAMPLES, "..", "docs", "library.md")) as file:
        page = file.read()
    for source in ("train_ddp.py", "from_ddp.cpp"):
        with open(os.path.join(EXAMPLES, "cpp", "from_ddp", source)) as file:
            assert file.read() in page, f"docs/library.md shows another {source}"


def check_dit(args, folder):
    for ranks in (1, 2):
        same_lines(run(ranks, [args.bin + "/dit", DIGITS, "3"], folder), expected_of("dit"), 0.02)
    assert os.path.getsize(os.path.join(folder, "dit.ppm")) == len("P6 320 32 255\n") + 10 * 32 * 32 * 3


def check_lora_own_model(args, folder):
    for ranks in (1, 2):
        same_lines(run(ranks, [args.bin + "/lora_own_model", DIGITS], folder), expected_of("lora_own_model"), 0.02)
    assert sorted(read_safetensors(os.path.join(folder, "adapters.safetensors"))) == [
        f"{layer}.lora_{part}" for layer in ("first", "second", "third") for part in "ab"]


def check_gan(args, folder):
    """Undisturbed, and stopped in the middle of an epoch: the lines are the same, and nothing else is on standard output."""
    for ranks in (0, 1, 2):
        lines = []
        for part, batches in enumerate(("0", "14", "3", "0")):
            states = os.path.join(folder, "gan-states")
            if part < 2 and os.path.isdir(states):
                shutil.rmtree(states)
            lines.append(run(ranks, [args.bin + "/gan", DIGITS, batches], folder))
        undisturbed, stopped = lines[0], "".join(lines[1:])
        same_lines(undisturbed, expected_of("gan"), 0.02)
        assert stopped == undisturbed, (ranks, undisturbed, stopped)
    assert all(name.startswith("body.") for name in read_safetensors(os.path.join(folder, "generator.safetensors")))


def check_resnet18(args, folder):
    for ranks in (1, 2):
        command = [args.bin + "/resnet18", DIGITS, "--width", "8", "--epochs", "3", "--batch", "20", "--save", "net.safetensors"]
        found, expected = run(ranks, command, folder), expected_of("resnet18")
        same_lines(NUMBER.sub("0", found), NUMBER.sub("0", expected), 0)
        # In so short a run at so high a rate, rounding decides the accuracy, and in time the loss. The cases below
        # compare numbers.
        assert abs(float(NUMBER.findall(found)[1]) / float(NUMBER.findall(expected)[1]) - 1) < 0.02, found
    assert "bn1.running_var" in read_safetensors(os.path.join(folder, "net.safetensors"))


def check_airbench(args, folder):
    """Two processes compute what one does. 300 pictures are enough to see that the loss falls."""
    losses = []
    for ranks in (1, 2):
        found = run(ranks, [args.bin + "/airbench", DIGITS, "--batch", "100", "--epochs", "3.4"], folder)
        losses.append([float(words) for words in re.findall(r"loss (\d+\.\d+)", found)])
        assert re.search(r"\nslow weights, six views: \d+\.\d\d %\n$", found), found
    assert len(losses[0]) == 4 and losses[0][-1] < losses[0][0], losses
    assert all(abs(a / b - 1) < 0.02 for a, b in zip(*losses)), losses
    found = run(2, [args.bin + "/airbench", DIGITS, "--batch", "100", "--epochs", "0.3", "--precision", "bf16"], folder)
    assert abs(float(re.search(r"loss (\d+\.\d+)", found).group(1)) / losses[0][0] - 1) < 0.1, (found, losses)
    for wrong in (["--epoch", "3"], ["--batch"], ["--precision", "fp64"], ["--epochs", "0"], ["--batch", "301"]):
        told = run(2, [args.bin + "/airbench", DIGITS, *wrong], folder, code=2)
        assert told.count("error: ") == 1 and ("usage: " in told or "300 pictures" in told), (wrong, told)


def check_reference_cases(args, folder):
    out = os.path.join(folder, "out.safetensors")
    for case in ("batch", "group"):
        directory = os.path.join(args.data, "vision", case)
        for ranks in (1, 2, 3, 4):
            for stage in (0, 1, 2, 3):
                run(ranks, [args.bin + "/resnet18", directory, "--stage", str(stage), "--dump", out], folder)
                compare(out, os.path.join(directory, "expect.safetensors"), 1e-4)
                os.remove(out)


def check_local_statistics(args, folder):
    """They are others on several processes, from the first logits on; on one they are the same."""
    directory, out = os.path.join(args.data, "vision", "batch"), os.path.join(folder, "out.safetensors")
    run(1, [args.bin + "/resnet18", directory, "--local-statistics", "--dump", out], folder)
    compare(out, os.path.join(directory, "expect.safetensors"), 1e-4)
    run(2, [args.bin + "/resnet18", directory, "--local-statistics", "--dump", out], folder)
    found, expected = (read_safetensors(path)["logits"][2] for path in (out, os.path.join(directory, "expect.safetensors")))
    assert max(abs(a - b) for a, b in zip(found, expected)) > 0.01


def check_refusals(args, folder):
    source = os.path.join(args.data, "vision", "batch")
    for name in ("model", "data_batch_1.bin", "test_batch.bin"):
        os.symlink(os.path.join(source, name), os.path.join(folder, name))
    with open(os.path.join(source, "case.json")) as file:
        good = json.load(file)
    for change, words in (({"mixup": 0.2}, "unknown field mixup"), ({"norm": "layer"}, '"norm" must be one of "batch", "group"'),
                          ({"optimizer": "adam"}, '"optimizer" must be "sgd"'), ({"augmentation": "cutout"}, '"augmentation" must be "none"'),
                          ({"train_records": 31}, "holds 30 records, case.json says 31"), ({"steps": 4}, "4 steps of 10 records"),
                          ({"width": 8}, "the module's of [8]"), ({"classes": 3}, "has the label"), ({"lr": "fast"}, '"lr" must be a number')):
        with open(os.path.join(folder, "case.json"), "w") as file:
            json.dump({**good, **change}, file)
        told = run(0, [args.bin + "/resnet18", folder, "--dump", "out.safetensors"], folder, code=1)
        assert words in told, (words, told)
        assert not os.path.exists(os.path.join(folder, "out.safetensors"))
    told = run(0, [args.bin + "/resnet18", folder, "--stag", "1"], folder, code=1)
    assert "--stag" in told, told
    told = run(0, [args.bin + "/resnet18", "/nowhere"], folder, code=1)
    assert "/nowhere/data_batch_1.bin" in told and "cifar-10-binary.tar.gz" in told, told


if __name__ == "__main__":
    args = checks.arguments(__doc__)
    checks.run_checks(args, globals(), lambda check, folder: check(args, folder))
