"""Runs zero_train and asks how its steps spend their time: figures of metrics.jsonl, the line at the end, traces; and what its model
says at validations. Nothing of it may change a result.

usage: test_profile.py BIN TESTS_DATA [-k NAME]        exits 1 when something is wrong
"""
import collections
import json
import os
import shutil
import subprocess

import test_checkpoints
import test_records
from checks import PARTS, arguments, environment, run_checks

STEPS = ("--set", "training.steps=8", "--set", "training.global_batch_size=4")
TRACE = (*STEPS, "--set", "metrics.trace_steps=[3, 5]")
TRACKS = {"steps", "compute", "communication", "disk"}
TRACK_OF = {"gathers": "communication", "sums": "communication", "ranks": "communication", "disk": "disk"}
SAMPLES = ("--set", "metrics.samples=prompts.txt", "--set", "metrics.sample_tokens=6", "--set", "data.validation=[\"tokens.bin\"]",
           "--set", "training.validation_interval=4", "--set", "training.precision=fp32", "--set", "model.vocab_size=32000",
           "--set", "data.tokenizer=tokenizer", "--set", "lr_scheduler.type=constant", "--set", "checkpoint.interval=4", *STEPS)
PROMPTS = ["In the beginning", "God said, Let there be"]
TALK = [{"messages": [{"role": "user", "content": "Who made heaven?"}]}, {"messages": [{"role": "user", "content": "And light?"}, {"role": "assistant", "content": "It was made."}]}]


class Place(test_checkpoints.Place):
    def __init__(self, folder, bin, data):
        super().__init__(folder, bin, data)
        shutil.copytree(os.path.join(data, "tinyllama-chat"), self.path("tokenizer"))
        self.write("prompts.txt", "".join(line + "\n" for line in PROMPTS))
        self.write("talk.jsonl", "".join(json.dumps(line) + "\n" for line in TALK))

    def write(self, name, content):
        with open(self.path(name), "w") as file:
            file.write(content)

    def lines(self, out="out", name="metrics.jsonl"):
        with open(self.path(out, name)) as file:
            return [json.loads(line) for line in file]

    def trains(self, *options, **more):
        code, said = self.run(*options, **more)
        assert code == 0, said
        return said

    def preset(self):
        """A model with room for the tokenizer's ids."""
        self.config({**test_checkpoints.CONFIG, "model": {"preset": "llama-tiny"}})

    def traced(self, first, out="out"):
        with open(self.path(out, "trace", f"steps-{first}.json"), "rb") as file:
            trace = json.loads(file.read().decode("utf-8"), parse_constant=refuse_constant, object_pairs_hook=without_twins)
        expect_format(trace)
        return trace["traceEvents"]


def refuse_constant(word):
    raise AssertionError(f"{word} is no JSON")


def without_twins(pairs):
    assert len({key for key, _ in pairs}) == len(pairs), ("a key twice", pairs)
    return dict(pairs)


def expect_format(trace):
    """The JSON object of the Trace Event Format, as trace processors read it: metadata and complete events, in microseconds, whose
    slices on a track are apart or inside one another."""
    assert set(trace) <= {"traceEvents", "displayTimeUnit", "otherData", "metadata"}, trace.keys()
    assert trace.get("displayTimeUnit", "ms") in ("ms", "ns"), trace["displayTimeUnit"]
    slices = collections.defaultdict(list)
    for event in trace["traceEvents"]:
        assert isinstance(event["name"], str) and event["name"] and isinstance(event.get("args", {}), dict), event
        # Track 0 of process 0 stands for the idle thread, which trace processors do not show.
        assert type(event["pid"]) is int and type(event["tid"]) is int and event["pid"] > 0 and event["tid"] > 0, event
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name", "process_sort_index", "thread_sort_index"), event
            key, kind = ("sort_index", int) if event["name"].endswith("sort_index") else ("name", str)
            assert type(event["args"][key]) is kind, event
            continue
        assert event["ph"] == "X" and isinstance(event["cat"], str), event
        for key in ("ts", "dur"):
            assert type(event[key]) in (int, float) and 0 <= event[key] < 2**53 / 1000, event  # whole nanoseconds are exact
        slices[event["pid"], event["tid"]].append((round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)))
    for track, all_of_it in slices.items():
        open_ends = []
        for begin, end in sorted(all_of_it, key=lambda one: (one[0], -one[1])):
            while open_ends and open_ends[-1] <= begin + 2:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1] + 2, ("slices overlap in part", track, begin, end, open_ends)
            open_ends.append(end)


def parts(line):
    return {part: line["step_" + part] for part in PARTS}


def near(one, other, share=0.02):
    return abs(one - other) <= share * max(one, other) + 1e-6


def expect_parts(place, ranks, some, out="out"):
    """They add up, and those named are not 0."""
    lines = place.lines(out)
    for line in lines:
        assert near(sum(parts(line).values()), line["step_seconds"], 1e-9), line
        assert all(value >= 0 for value in parts(line).values()), line
        assert all(line["step_" + part] > 0 for part in some), (some, line)
        assert ("slowest_rank" in line) == (ranks > 1) and (ranks == 1 or line["slowest_rank"] in range(ranks)), line
    if [line["step"] for line in lines] != list(range(1, len(lines) + 1)):
        return lines
    took = lines[-1]["seconds"] - lines[0]["seconds"]
    inside = sum(line["step_seconds"] for line in lines[1:])
    assert 0.02 * took < inside <= took + 0.01, (inside, took)
    return lines


def expect_trace(place, first, steps, ranks, out="out"):
    """Every moment of a step is on one track, and the slices of a rank add up to its step, within 2 %: to the step of the trace, and
    to the times in metrics.jsonl."""
    names, tracks, whole, sums = {}, collections.defaultdict(dict), {}, collections.Counter()
    events = [{**event, "pid": event["pid"] - 1} for event in place.traced(first, out)]
    for event in events:
        assert event["ph"] in "MX" and isinstance(event["pid"], int) and isinstance(event["tid"], int), event
        if event["name"] == "process_name":
            names[event["pid"]] = event["args"]["name"]
        elif event["name"] == "thread_name":
            tracks[event["pid"]][event["tid"]] = event["args"]["name"]
    assert names == {rank: f"rank {rank}" for rank in range(ranks)}, names
    assert all(set(named.values()) == TRACKS for named in tracks.values()) and len(tracks) == ranks, tracks
    for event in events:
        if event["ph"] == "X" and event["name"].startswith("step "):
            assert tracks[event["pid"]][event["tid"]] == "steps"
            whole[event["pid"], int(event["name"][5:])] = event["ts"], event["ts"] + event["dur"]
    assert sorted(whole) == [(rank, step) for rank in range(ranks) for step in steps], sorted(whole)
    found, ends = collections.defaultdict(collections.Counter), collections.defaultdict(float)
    for event in sorted(events, key=lambda event: event.get("ts", 0)):
        if event["ph"] != "X" or event["name"].startswith("step "):
            continue
        assert tracks[event["pid"]][event["tid"]] == TRACK_OF.get(event["cat"], "compute"), event
        (step,) = [step for (rank, step), (begin, end) in whole.items()
                   if rank == event["pid"] and begin - 0.002 <= event["ts"] and event["ts"] + event["dur"] <= end + 0.002]
        assert event["ts"] >= ends[event["pid"]] - 0.002, ("two slices of a rank at once", event, ends)
        ends[event["pid"]] = event["ts"] + event["dur"]
        sums[event["pid"], step] += event["dur"]
        found[step][event["cat"]] += event["dur"] / 1e6 / ranks
    for key, (begin, end) in whole.items():
        assert near(sums[key], end - begin), (key, sums[key], end - begin)
    for line in place.lines(out):
        if line["step"] in steps:
            assert all(near(found[line["step"]][part], line["step_" + part]) for part in PARTS), (line, found[line["step"]])
            of_ranks = [sums[rank, line["step"]] / 1e6 for rank in range(ranks)]
            assert near(sum(of_ranks) / ranks, line["step_seconds"]), (line, of_ranks)
            assert ranks == 1 or near(of_ranks[int(line["slowest_rank"])], sum(line["slowest_" + part] for part in PARTS)), (line, of_ranks)
    return events


def check_parts(place):
    said = place.trains(*STEPS, "--set", "zero.stage=3")
    assert said.count("bound by ") == 1, said
    expect_parts(place, 2, ("products", "attention", "kernels", "gathers", "sums", "ranks", "data", "other"))
    assert all(line["step_disk"] == 0 for line in place.lines()), place.lines()
    said = place.trains(*STEPS, "--set", "zero.stage=3", "--set", "metrics.step_parts=false", out="off")
    assert "bound by" not in said and not any(name.startswith(("step_", "slowest_")) for line in place.lines("off") for name in line), said
    place.expect_same("off", "out")
    place.trains(*STEPS, "--set", "metrics.log_interval=4", ranks=1, out="one")
    expect_parts(place, 1, ("products", "attention", "kernels"), "one")
    assert len(place.lines("one")) == 2 and all(line["step_gathers"] == line["step_ranks"] == 0 for line in place.lines("one")), place.lines("one")


def check_disk(place):
    place.trains(*TRACE, "--set", "zero.stage=3", "--set", "offload.optimizer=nvme", "--set", "offload.parameters=nvme", "--set", "offload.nvme_dir=nvme")
    expect_parts(place, 2, ("disk",))
    expect_trace(place, 3, [3, 4, 5], 2)


def check_trace(place):
    said = place.trains(*TRACE, "--set", "zero.stage=3")
    assert "the trace of steps is in out/trace/steps-3.json" in said, said
    events = expect_trace(place, 3, [3, 4, 5], 2)
    gathers = [event for event in events if event["name"] == "all_gather" and event["args"].get("phase") == "forward"]
    assert gathers and all(event["args"]["bytes"] > 0 and event["args"]["unit"] >= 0 for event in gathers), gathers[:3]
    # Clocks are aligned: ranks that meet in a step are in it at the same time.
    begins = {event["pid"]: event["ts"] for event in events if event["name"] == "step 4"}
    ends = {event["pid"]: event["ts"] + event["dur"] for event in events if event["name"] == "step 4"}
    assert max(begins.values()) < min(ends.values()), (begins, ends)
    place.trains(*STEPS, "--set", "zero.stage=3", out="off")
    assert not os.path.exists(place.path("off/trace"))
    place.expect_same("off", "out")
    # --overwrite removes the run's traces and nothing else
    place.write("out/trace/notes", "mine")
    place.trains(*STEPS, "--overwrite")
    assert os.listdir(place.path("out/trace")) == ["notes"]


def check_resumed_trace(place):
    """A run that stops inside the traced steps leaves what it has; the rest has a file of its own."""
    options = ("--set", "metrics.trace_steps=[3, 6]", "--set", "checkpoint.interval=1")
    place.trains(*STEPS, *options, "--set", "training.steps=4")
    expect_trace(place, 3, [3, 4], 2)
    shutil.rmtree(place.path("out/model"))
    place.trains(*STEPS, *options, "--resume")
    assert sorted(os.listdir(place.path("out/trace"))) == ["steps-3.json", "steps-5.json"]
    expect_trace(place, 5, [5, 6], 2)


def check_axes(place):
    fp32 = ("--set", "training.precision=fp32", "--set", "zero.stage=1")
    for ranks, axes, some in ((2, ("parallel.pipeline=2",), ("ranks",)), (2, ("parallel.tensor=2",), ("ranks",)),
                              (4, ("parallel.pipeline=2", "parallel.tensor=2"), ("ranks",)), (4, ("zero.stage=3", "zero.shard_degree=2"), ("gathers",))):
        options = [word for axis in axes for word in ("--set", axis)]
        assert "bound by " in place.trains(*TRACE, *fp32, *options, ranks=ranks), axes
        expect_parts(place, ranks, ("products", "kernels", *some))
        expect_trace(place, 3, [3, 4, 5], ranks)
        shutil.rmtree(place.path("out"))


def check_trace_that_cannot_be_written(place):
    """A warning; the run and its figures are whole."""
    options = ("--set", "checkpoint.interval=1")
    place.trains(*STEPS, *options, "--set", "training.steps=1")
    shutil.rmtree(place.path("out/model"))
    place.write("out/trace", "no folder")
    said = place.trains(*TRACE, *options, "--resume")
    assert said.count("the trace of steps cannot be written: ") == 1 and "training goes on without it" in said, said
    expect_parts(place, 2, ("products",))


def continued_by_zero_generate(place, prompts, *options):
    done = subprocess.run([place.bin + "/zero_generate", "out/model", "--prompts", prompts, "--max-new-tokens", "6", *options], cwd=place.folder,
                          capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def without_step(line):
    return {key: value for key, value in line.items() if key not in ("version", "step")}


def check_samples(place):
    place.preset()
    place.trains(*SAMPLES, ranks=1)
    samples = place.lines(name="samples.jsonl")
    assert [(line["step"], line["prompt"]) for line in samples] == [(step, prompt) for step in (4, 8) for prompt in PROMPTS], samples
    assert all(0 < len(line["ids"]) <= 6 and isinstance(line["text"], str) for line in samples), samples
    assert [without_step(line) for line in samples[2:]] == continued_by_zero_generate(place, "prompts.txt"), samples
    # nothing of it in the model
    place.trains(*SAMPLES, "--set", "metrics.samples=", ranks=1, out="without")
    assert not os.path.exists(place.path("without/samples.jsonl"))
    place.expect_same("without", "out")
    # any layout says the same
    for ranks, axis in ((2, "zero.stage=3"), (2, "parallel.tensor=2"), (2, "zero.stage=0")):
        place.trains(*SAMPLES, "--set", axis, ranks=ranks, out="other")
        assert place.lines("other", "samples.jsonl") == samples, (axis, place.lines("other", "samples.jsonl"), samples)
        shutil.rmtree(place.path("other"))


def check_resumed_samples(place):
    place.preset()
    place.trains(*SAMPLES, out="whole")
    place.trains(*SAMPLES, "--set", "training.steps=4")
    shutil.rmtree(place.path("out/model"))
    with open(place.path("out/samples.jsonl"), "a") as file:      # of steps that the checkpoint does not have
        file.write('{"version": 1, "step": 5, "prompt": "later"}\n')
    place.trains(*SAMPLES, "--resume")
    assert place.lines(name="samples.jsonl") == place.lines("whole", "samples.jsonl")
    place.trains(*SAMPLES, "--overwrite")
    assert place.lines(name="samples.jsonl") == place.lines("whole", "samples.jsonl")


def expect_samples_on_dashboards(place, steps):
    expected = {step: [(line["prompt"], line["text"]) for line in place.lines(name="samples.jsonl") if line["step"] == step] for step in steps}
    events = {step: values["samples"] for step, (_, values) in test_records.read_events(place.path("out/tb")).items() if "samples" in values}
    verbatim = lambda text: "    " + text.replace("\n", "\n    ")
    assert events == {step: [["**prompt**", "**continuation**"], *([verbatim(prompt), verbatim(text)] for prompt, text in rows)] for step, rows in expected.items()}, events
    tables = {step: figures["samples"] for step, figures in test_records.read_rows(place.path("out/trackio/project.db"))["out"].items() if "samples" in figures}
    assert all(table["_type"] == "trackio.table" for table in tables.values()), tables
    assert {step: [(row["prompt"], row["continuation"]) for row in table["_value"]] for step, table in tables.items()} == expected, tables


def check_samples_on_dashboards(place):
    """TensorBoard and trackio have the samples of each validation, and a resumed run copies those of earlier steps."""
    place.preset()
    often = ("--set", "training.validation_interval=2")
    place.trains(*SAMPLES, *often, "--set", "training.steps=4")
    assert not {"tb", "trackio"} & set(os.listdir(place.path("out")))
    shutil.rmtree(place.path("out/model"))
    place.trains(*SAMPLES, *often, "--resume", "--set", "metrics.tensorboard=true", "--set", "metrics.trackio=project")
    expect_samples_on_dashboards(place, (2, 4, 6, 8))


def check_chats(place):
    place.preset()
    place.trains(*SAMPLES, "--set", "metrics.samples=talk.jsonl", "--set", "data.chat_template=zephyr", "--set", "zero.stage=3")
    samples = place.lines(name="samples.jsonl")
    assert [without_step(line) for line in samples[2:]] == continued_by_zero_generate(place, "talk.jsonl", "--chat-template", "zephyr"), samples
    assert samples[1]["reference"] == "It was made.", samples


if __name__ == "__main__":
    args = arguments(__doc__)
    run_checks(args, globals(), lambda check, folder: check(Place(folder, args.bin, args.data)))
