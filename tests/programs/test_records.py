"""Runs zero_train with event files for TensorBoard and the database of a trackio project: both hold the figures of metrics.jsonl, after
kills, stops, resumptions, steps back and locks.

usage: test_records.py BIN TESTS_DATA [-k NAME]        exits 1 when something is wrong
"""
import contextlib
import json
import os
import shutil
import signal
import sqlite3
import struct
import subprocess
import time

import test_nonfinite
from checks import ModelPlace, arguments, environment, mpirun, run_checks

DEADLINE_SECONDS = 60
CONFIG = {
    "job": {"output_dir": "out"},
    "model": {"preset": "llama-tiny", "vocab_size": 512},
    "data": {"train": ["tokens.bin"], "validation": ["tokens.bin"]},
    "training": {"steps": 12, "seq_len": 24, "local_batch_size": 1, "precision": "fp32", "device": "cpu", "validation_interval": 4},
    "optimizer": {"name": "prodigy"},
    "checkpoint": {"interval": 3},
    "metrics": {"tensorboard": True, "trackio": "project"},
}
SYSTEM = ("seconds", "tokens_per_second", "peak_bytes", "host_available_bytes", "host_used_bytes", "load_average")


class Place(ModelPlace):
    def __init__(self, folder, bin, data):
        super().__init__(folder, bin, data, CONFIG)

    def start(self, *options, ranks=1, **more):
        command = [*(mpirun(ranks) if ranks > 1 else []), self.bin + "/zero_train", "config.toml", *options]
        with open(self.path("said"), "w") as said:
            return subprocess.Popen(command, cwd=self.folder, stdout=said, stderr=subprocess.STDOUT, env=environment(**more))

    def run(self, *options, **more):
        """(exit code, what it said)"""
        code = self.start(*options, **more).wait(timeout=DEADLINE_SECONDS)
        with open(self.path("said")) as file:
            return code, file.read()


def wait_for_lines(place, process, lines, out="out"):
    path, end = place.path(out, "metrics.jsonl"), time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < end and process.poll() is None:
        if os.path.exists(path) and open(path).read().count("\n") >= lines:
            return
        time.sleep(0.005)
    raise AssertionError(f"it was to write {lines} lines, and ended with {process.poll()}")


def lines_of(place, out="out"):
    with open(place.path(out, "metrics.jsonl")) as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def tagged(line):
    """The figures of a line as dashboards have them."""
    def tag(name):
        if name.startswith(("step_", "slowest_")):
            return "time/" + name
        return "validation/loss" if name == "validation_loss" else ("system/" if name in SYSTEM else "train/") + name
    return {tag(name): value for name, value in line.items() if name not in ("version", "step", "time")}


# TensorBoard's reader: CRC-32C bit by bit, TFRecords, and what is needed of Protocol Buffers.

def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17 & 0xFFFFFFFF) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    """The events of a file up to a torn one."""
    at = 0
    while at + 16 <= len(data):
        size, = struct.unpack_from("<Q", data, at)
        if at + 16 + size > len(data):
            return
        assert struct.unpack_from("<I", data, at + 8)[0] == masked(data[at:at + 8]), at
        event = data[at + 12:at + 12 + size]
        assert struct.unpack_from("<I", data, at + 12 + size)[0] == masked(event), at
        yield event
        at += 16 + size


def fields(data):
    """(number, value) of a message."""
    def varint():
        nonlocal at
        number = shift = 0
        while True:
            byte = data[at]
            at += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    at = 0
    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = {1: 8, 5: 4}.get(key & 7) or varint()
        value, at = data[at:at + size], at + size
        yield key >> 3, struct.unpack({1: "<d", 5: "<f"}[key & 7], value)[0] if key & 7 in (1, 5) else value


def texts_of(value):
    """The rows of a table of texts."""
    assert dict(fields(dict(fields(value[9]))[1])) == {1: b"text"}, value
    tensor = list(fields(value[8]))
    shape, cells = dict(tensor)[2], [cell.decode() for number, cell in tensor if number == 8]
    rows, columns = [dict(fields(size))[1] for _, size in fields(shape)]
    assert dict(tensor)[1] == 7 and rows * columns == len(cells), tensor
    return [cells[row * columns:(row + 1) * columns] for row in range(rows)]


def read_events(folder):
    """{step: (time, {tag: value})}; a session that begins drops its step and later ones. A text's value is its table."""
    steps = {}
    for name in sorted(os.listdir(folder)):
        assert "tfevents" in name, name
        with open(os.path.join(folder, name), "rb") as file:
            events = [dict(fields(event)) for event in records(file.read())]
        assert events and events[0][3] == b"brain.Event:2", events[:1]
        for event in events[1:]:
            if 7 in event:
                assert dict(fields(event[7])) == {1: 1}, event
                steps = {step: figures for step, figures in steps.items() if step < event[2]}
                continue
            values = [dict(fields(value)) for number, value in fields(event[5]) if number == 1]
            assert event[2] not in steps, (name, event[2])
            steps[event[2]] = event[1], {value[1].decode(): value[2] if 2 in value else texts_of(value) for value in values}
    return steps


def read_rows(path):
    """{run name: {step: figures}}"""
    with contextlib.closing(sqlite3.connect(path)) as database:
        runs = {}
        for name, step, figures in database.execute("SELECT run_name, step, metrics FROM metrics ORDER BY id"):
            assert step not in runs.setdefault(name, {}), (name, step)
            runs[name][step] = json.loads(figures)
        return runs


def expect_records(place, out="out", steps=12, database=None):
    """Both records hold every figure of every line."""
    lines, events = lines_of(place, out), read_events(place.path(out, "tb"))
    rows = read_rows(database or place.path(out, "trackio/project.db"))[os.path.basename(out)]
    assert [line["step"] for line in lines] == sorted(events) == sorted(rows) == list(range(1, steps + 1)), (lines, events, rows)
    for line in lines:
        moment, scalars = events[line["step"]]
        expected = tagged(line)
        none = {tag for tag, value in expected.items() if value is None}
        assert moment == line["time"] and set(scalars) == set(expected), (line, scalars)
        assert all(tag in none or scalars[tag] == struct.unpack("<f", struct.pack("<f", value))[0] for tag, value in expected.items()), (line, scalars)
        assert {tag: value for tag, value in rows[line["step"]].items() if tag not in none} == {tag: value for tag, value in expected.items() if tag not in none}, (line, rows)
    return lines


def check_whole(place):
    before = time.time()
    code, said = place.run(ranks=2)
    assert code == 0 and "warning" not in said, said
    lines = expect_records(place)
    assert before - 1 < lines[0]["time"] <= lines[-1]["time"] < time.time() + 1, lines
    assert all(0 < line["host_available_bytes"] and 0 < line["host_used_bytes"] and line["load_average"] >= 0 and line["d"] > 0 for line in lines), lines
    rows = 96   # windows of the data
    assert [line["epoch"] for line in lines] == [2 * line["step"] / rows for line in lines], lines
    assert ["validation_loss" in line for line in lines] == [line["step"] % 4 == 0 for line in lines], lines
    with contextlib.closing(sqlite3.connect(place.path("out/trackio/project.db"))) as database:
        (name, configuration), = database.execute("SELECT run_name, config FROM configs")
        assert name == "out" and json.loads(configuration)["optimizer.name"] == "prodigy", configuration
    # nothing of it where it is not asked for
    code, said = place.run("--set", "job.output_dir=bare", "--set", "metrics.tensorboard=false", "--set", "metrics.trackio=")
    assert code == 0 and not {"tb", "trackio"} & set(os.listdir(place.path("bare"))), said


def check_kills(place):
    for kill in range(3):
        process = place.start("--set", "training.steps=2000", *(["--resume"] if kill else []))
        had = len(lines_of(place)) if kill else 0
        wait_for_lines(place, process, had + 20)
        process.send_signal(signal.SIGKILL)
        process.wait()
        events = read_events(place.path("out/tb"))      # readable as they are
        assert sorted(events) == list(range(1, len(events) + 1)) and len(events) >= had, events
        assert list(read_rows(place.path("out/trackio/project.db"))) == ["out"]
    end = len(lines_of(place)) + 10
    code, said = place.run("--set", f"training.steps={end}", "--resume")
    assert code == 0 and len(os.listdir(place.path("out/tb"))) == 4, said
    expect_records(place, steps=end)


def check_gaps_are_filled(place):
    """What records lack of an earlier start comes from metrics.jsonl; so does all of a run that began without them."""
    process = place.start("--set", "training.steps=2000", "--set", "metrics.tensorboard=false", "--set", "metrics.trackio=")
    wait_for_lines(place, process, 10)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=DEADLINE_SECONDS) == 75
    steps = len(lines_of(place))
    code, said = place.run("--resume", "--set", f"training.steps={steps + 5}", "--set", "checkpoint.interval=1", "--set", "training.validation_interval=0")
    assert code == 0, said
    expect_records(place, steps=steps + 5)
    for name in os.listdir(place.path("out/model")):
        os.remove(place.path("out/model", name))
    os.rmdir(place.path("out/model"))
    newest = place.path("out/tb", max(os.listdir(place.path("out/tb"))))
    os.truncate(newest, os.path.getsize(newest) - 5)
    with contextlib.closing(sqlite3.connect(place.path("out/trackio/project.db"))) as database:
        database.execute("DELETE FROM metrics WHERE step IN (3, 4)")
        database.commit()
    code, said = place.run("--resume", "--set", f"training.steps={steps + 8}", "--set", "training.validation_interval=0")
    assert code == 0, said
    expect_records(place, steps=steps + 8)


def check_steps_back(place):
    """A run that goes back to a checkpoint repeats its steps in both records."""
    broken = test_nonfinite.Place(place.path("nonfinite"), place.bin, place.data)
    records = ("--set", "metrics.tensorboard=true", "--set", "metrics.trackio=project")
    code, said = broken.run(*test_nonfinite.chosen("rollback"), *records)
    assert code == 0 and said.count("Back to the newest checkpoint") == 3, said
    assert len(os.listdir(broken.path("out/tb"))) == 4, os.listdir(broken.path("out/tb"))
    expect_records(broken, steps=24)


def check_locked(place):
    """A locked database costs one warning and no time, and has all steps when it is free again."""
    os.mkdir(place.path("shared"))
    path = place.path("shared/project.db")
    assert place.run("--set", "job.output_dir=first", TRACKIO_DIR=place.path("shared"))[0] == 0
    assert not os.path.exists(place.path("first/trackio"))
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        begin = time.monotonic()
        process = place.start("--set", "training.steps=2000", TRACKIO_DIR=place.path("shared"))
        wait_for_lines(place, process, 50)
        assert time.monotonic() - begin < 30
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=DEADLINE_SECONDS) == 75
        said = open(place.path("said")).read()
        assert said.count("project.db: cannot be written: database is locked; training goes on, and its steps wait in memory") == 1, said
        assert "could not be written: database is locked; metrics.jsonl holds them, and --resume adds them" in said, said
        other.execute("COMMIT")
    end = len(lines_of(place)) + 3
    code, said = place.run("--resume", "--set", f"training.steps={end}", TRACKIO_DIR=place.path("shared"))
    assert code == 0 and "warning" not in said, said
    expect_records(place, steps=end, database=path)
    assert sorted(read_rows(path)) == ["first", "out"] and sorted(read_rows(path)["first"]) == list(range(1, 13))
    # freed while the run goes on
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        process = place.start("--set", "training.steps=400", "--set", "job.output_dir=freed", TRACKIO_DIR=place.path("shared"))
        wait_for_lines(place, process, 5, "freed")
        other.execute("COMMIT")
    assert process.wait(timeout=DEADLINE_SECONDS) == 0
    said = open(place.path("said")).read()
    assert "project.db can be written again; no step is missing" in said and "could not be written" not in said, said
    expect_records(place, "freed", 400, path)


def check_overwrite(place):
    """--overwrite removes the records, and no file of others next to them."""
    assert place.run()[0] == 0
    others = ("tb/notes.txt", "tb/events.out.tfevents.1.mine", "trackio/media.txt")
    for name in others:
        open(place.path("out", name), "w").close()
    code, said = place.run("--overwrite", "--set", "metrics.tensorboard=false", "--set", "metrics.trackio=")
    assert code == 0, said
    assert sorted(f"{folder}/{name}" for folder in ("tb", "trackio") for name in os.listdir(place.path("out", folder))) == sorted(others)
    for name in others:
        os.remove(place.path("out", name))
    assert place.run("--overwrite")[0] == 0
    expect_records(place)


def check_refusals(place):
    for name in ("my project", "../a", "registry-a", "a_system"):
        code, said = place.run("--set", f"metrics.trackio={name}")
        assert code == 2 and f"--set metrics.trackio={name}: must be empty, or a name of letters" in said, said
    code, said = place.run("--set", "metrics.enable_tensorboard=true")
    assert code == 2 and "`enable_tensorboard` (torchtitan) is `tensorboard` in [metrics]" in said, said
    os.mkdir(place.path("shared"))
    with open(place.path("shared/project.db"), "w") as file:
        file.write("x" * 4096)
    # A mistake of the configuration, found before anything is written.
    for ranks, option in ((1, "--overwrite"), (2, "--overwrite"), (1, "--dry-run")):
        code, said = place.run(option, ranks=ranks, TRACKIO_DIR=place.path("shared"))
        assert code == 2 and said.count("error: ") == 1 and "[metrics] trackio" in said, (code, said)
        assert "project.db: cannot be opened as a database of trackio 0.24 or later: file is not a database" in said, said
        assert not os.path.exists(place.path("out")), os.listdir(place.path("out"))
    code, said = place.run(TRACKIO_DIR=place.path("shared/project.db"))
    assert code == 2 and "project.db: must be a folder" in said, (code, said)
    # A database of the run's own that --overwrite removes is no obstacle.
    assert place.run()[0] == 0
    shutil.copy(place.path("shared/project.db"), place.path("out/trackio/project.db"))
    code, said = place.run("--resume", "--set", "training.steps=13")
    assert code == 2 and "file is not a database" in said, (code, said)
    assert place.run("--overwrite")[0] == 0
    expect_records(place)


def main():
    args = arguments(__doc__)
    run_checks(args, globals(), lambda check, folder: check(Place(folder, args.bin, args.data)))


if __name__ == "__main__":
    main()
