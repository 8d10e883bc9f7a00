"""Reports of runs: what the page holds of real small runs and of ragged records, what is refused, and reports that follow a run.

usage: test_report.py BIN TESTS_DATA [-k NAME]        exits 1 when something is wrong
"""
import html.parser
import json
import os
import re
import signal
import subprocess
import time

from checks import ModelPlace, arguments, environment, run_checks

DEADLINE_SECONDS = 120
SECTIONS = {
    "job": {"output_dir": "out"},
    "model": {"preset": "llama-tiny", "vocab_size": 512},
    "data": {"train": ["tokens.bin"], "validation": ["tokens.bin"]},
    "training": {"steps": 6, "seq_len": 24, "local_batch_size": 1, "global_batch_size": 2, "precision": "fp32", "device": "cpu", "validation_interval": 3},
    "checkpoint": {"interval": 2},
}


class Page(html.parser.HTMLParser):
    """The elements of a file, and the data of its script."""

    def __init__(self, path):
        super().__init__()
        self.tags, self.data, self.outside = [], None, ""
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        self.feed(self.text)
        assert not re.search(r"https?://|\bsrc=|\bhref=|@import|url\(", self.text.replace(self.data, "")), "the page needs another file"
        self.read = json.loads(self.data)
        self.runs = {run["name"]: run for run in self.read["runs"]}

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.holds_data = ("id", "data") in attributes

    def handle_data(self, text):
        if self.tags and self.tags[-1] == "script" and self.data is None and self.holds_data:
            self.data = text


def report(place, *words, code=0, env=None):
    done = subprocess.run([place.bin + "/zero_report", *words], cwd=place.folder, capture_output=True, text=True, timeout=DEADLINE_SECONDS, env=env or environment())
    assert done.returncode == code, (words, done)
    return done


def page_of(place, *runs):
    out = place.path("page.html")
    assert report(place, *runs, "--out", out).stdout == out + "\n"
    return Page(out)


def start(place, folder, *options, **settings):
    sets = [word for key, value in settings.items() for word in ("--set", f"{key.replace('__', '.')}={value}")]
    return subprocess.Popen([place.bin + "/zero_train", "config.toml", "--set", f"job.output_dir={folder}", *sets, *options], cwd=place.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment())


def train(place, folder, *options, code=0, **settings):
    process = start(place, folder, *options, **settings)
    said, _ = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == code, said


def records(place, folder):
    with open(place.path(folder, "metrics.jsonl")) as file:
        return [json.loads(line) for line in file]


def write(place, folder, lines, config=None):
    os.makedirs(place.path(folder), exist_ok=True)
    with open(place.path(folder, "metrics.jsonl"), "w") as file:
        file.writelines(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines)
    if config is not None:
        with open(place.path(folder, "config.toml"), "w") as file:
            file.write(config)


def line(step, loss, **more):
    return {"version": 1, "step": step, "loss": loss, "tokens": 10 * step, "seconds": step / 2, **more}


def check_figures(place):
    train(place, "a/run", optimizer__lr="1e-3")
    train(place, "b/run", optimizer__lr="2e-3", optimizer__name="prodigy", training__steps="5")
    page = page_of(place, "a/run", "b/run/metrics.jsonl", "a/run/")
    assert list(page.runs) == ["a/run", "b/run"], page.runs
    for name, steps in (("a/run", 6), ("b/run", 5)):
        run, logged = page.runs[name], records(place, name)
        near = lambda found, expected: abs(found - expected) <= 1e-5 * abs(expected)
        assert run["state"] == "finished" and run["restarts"] == 0 and run["steps"] == run["planned"] == steps and run["ranks"] == 1, run
        assert near(run["final_loss"], logged[-1]["loss"]) and near(run["best_loss"], min(one["loss"] for one in logged)), run
        assert near(run["validation_loss"], logged[-1]["validation_loss"]) and near(run["seconds"], logged[-1]["seconds"]) and run["tokens"] == logged[-1]["tokens"], run
        assert run["peak_bytes"] == max(one["peak_bytes"] for one in logged) and near(run["rate"], sorted(one["tokens_per_second"] for one in logged)[steps // 2]), run
        assert run["x"]["step"] == [one["step"] for one in logged] and all(near(*pair) for pair in zip(run["series"]["loss"]["v"], [one["loss"] for one in logged])), run
        assert run["series"]["validation_loss"]["s"] == [one["step"] for one in logged if "validation_loss" in one], run
    fields = [field["name"] for field in page.read["fields"]]
    assert fields[:8] == ["loss", "validation_loss", "lr", "d", "d_lr", "grad_norm", "tokens_per_second", "peak_bytes"] and "trained_tokens" in fields, fields
    assert "step_seconds" in fields and not [name for name in fields if name == "time" or name.startswith(("slowest_", "step_p"))], fields
    parts = page.read["parts"]
    assert {"products", "attention", "kernels", "gathers", "sums"} <= set(parts) and "seconds" not in parts, parts
    for name in ("a/run", "b/run"):
        series = page.runs[name]["series"]
        assert all(near(*pair) for pair in zip(series["step_products"]["v"], [one["step_products"] for one in records(place, name)])), name
        assert not [field for field in series if field.startswith("slowest_")], list(series)
    assert {"optimizer.lr", "optimizer.name", "training.steps"} <= set(page.read["settings"]) and not {"job.output_dir", "training.seq_len"} & set(page.read["settings"]), page.read["settings"]
    name = page.read["settings"].index("optimizer.name")
    assert [run["settings"][name] for run in page.read["runs"]] == ["adamw", "prodigy"], page.runs


def check_restarts(place):
    """A run that is stopped and resumed says so, and has each step once."""
    for times in (1, 2):
        began = time.time()
        done = sorted(os.listdir(place.path("out/checkpoints")))[-1] if times == 2 else ""
        process = start(place, "out", *(["--resume"] if times == 2 else []), training__steps="4000", checkpoint__interval="1000")
        # Lines of this start alone: the program listens to signals by then.
        wait_until(lambda: sum(json.loads(one)["time"] > began for one in records_so_far(place, "out")) > 3)
        process.send_signal(signal.SIGUSR1)
        said, _ = process.communicate(timeout=DEADLINE_SECONDS)
        assert process.returncode == 75, said
    with open(place.path("out/config.toml")) as file:
        header = re.match(r"# zero_train .*, 1 rank, start 2 after step (\d+)\n", file.read())
    assert header and done == f"step-{int(header[1]):08}", (header, done)
    run = page_of(place, "out").runs["out"]
    assert run["state"] == "stopped" and run["restarts"] == 1 and any("restarted once" in note for note in run["notes"]), run
    assert run["steps"] == records(place, "out")[-1]["step"] and run["planned"] == 4000, run
    write(place, "again", [line(step, 9) for step in range(1, 21)] + [line(step, 5) for step in range(11, 16)])
    run = page_of(place, "again").runs["again"]
    assert run["restarts"] == 1 and run["x"]["step"] == list(range(1, 16)) and run["series"]["loss"]["v"] == [9] * 10 + [5] * 5, run


def records_so_far(place, folder):
    if not os.path.exists(place.path(folder, "metrics.jsonl")):
        return []
    with open(place.path(folder, "metrics.jsonl")) as file:
        return [text for text in file if text.endswith("\n")]


def wait_until(true):
    end = time.time() + DEADLINE_SECONDS
    while not true():
        assert time.time() < end, "waited in vain"
        time.sleep(0.05)


def check_ragged(place):
    write(place, "cut", [line(1, 3), line(2, 2), '{"version": 1, "step": 3, "lo'])
    write(place, "empty", [])
    write(place, "gaps", [line(step, None if step in (2, 3, 7) else 4) for step in range(1, 8)], "[optimizer]\nlr = 1\n")
    write(place, "damaged", [line(1, 3), "word\n", line(2, 2)], "no toml")
    os.mkdir(place.path("marked"))
    with open(place.path("marked/.zero_run"), "w"):
        pass
    runs = page_of(place, "cut", "empty", "gaps", "damaged", "marked").runs
    notes = {name: " ".join(run["notes"]) for name, run in runs.items()}
    assert runs["cut"]["x"]["step"] == [1, 2] and "last line of metrics.jsonl is cut" in notes["cut"] and "config.toml is missing" in notes["cut"], runs["cut"]
    assert runs["empty"]["steps"] == 0 and runs["empty"]["final_loss"] is None and "no step is logged yet" in notes["empty"] + notes["marked"], runs["empty"]
    gaps = runs["gaps"]["series"]["loss"]
    assert gaps["v"] == [4, None, None, 4, 4, 4, None] and gaps["bads"] == 3 and gaps["bad"] == [2, 3, 7], gaps
    assert runs["gaps"]["bad"] == ["final loss"] and "not finite, shown as gaps: loss 3" in notes["gaps"], runs["gaps"]
    assert "1 damaged line of metrics.jsonl left out" in notes["damaged"] and "config.toml is not valid TOML (line 1)" in notes["damaged"], notes
    assert all(run["state"] == "stopped" and "validation_loss" not in run["series"] for run in runs.values()), runs


def check_hostile_words(place):
    """Names, settings and fields of runs are text, whatever they say."""
    name = "<b>&'\"<!--<script>"
    write(place, name, [line(1, 3, **{"</script><img src=x onerror=alert(1)>": 1})], '[optimizer]\nname = "</script><b>"\n')
    write(place, "other</script><b>", [line(1, 3)], '[optimizer]\nname = "x"\n')
    page = page_of(place, name, "other</script><b>/")
    tags = page.tags
    plain = Page(page_and_path(place))
    assert tags == plain.tags and page.text.count("</script") == plain.text.count("</script") == 2, tags
    assert name in page.runs and page.runs[name]["settings"] == ["</script><b>"], page.runs
    assert any(field["name"].startswith("</script><img") for field in page.read["fields"]), page.read["fields"]


def page_and_path(place):
    write(place, "plain", [line(1, 3)])
    report(place, "plain", "--out", "plain.html")
    return place.path("plain.html")


def check_samples(place):
    """Prompts and their continuations, by step; a run without them has none."""
    sample = lambda step, prompt, text: json.dumps({"version": 1, "step": step, "prompt": prompt, "text": text, "ids": [1]}) + "\n"
    for name in ("with", "without"):
        write(place, name, [line(step, 3) for step in range(1, 5)])
    with open(place.path("with/samples.jsonl"), "w") as file:
        file.write(sample(2, "God", "said") + sample(2, "</script>", "\n") + sample(4, "God", "let") + '{"step": 6, "pro')
    page = page_of(place, "with", "without")
    assert page.runs["with"]["samples"] == [{"step": 2, "rows": [["God", "said"], ["</script>", "\n"]]}, {"step": 4, "rows": [["God", "let"]]}], page.runs
    assert "samples" not in page.runs["without"] and "samples" not in " ".join(page.runs["with"]["notes"]), page.runs


def check_size(place):
    """Long and many runs stay below 5 MB, and nothing that sticks out is lost."""
    write(place, "long", [line(step, 1 if step != 77777 else 50, grad_norm=step / 3, lr=1 / step) for step in range(1, 200001)])
    many = [f"sweep/{number:03}" for number in range(100)]
    for folder in many:
        write(place, folder, [line(step, 1 / step, grad_norm=step / 3, lr=1 / (step + 1), tokens_per_second=step * 1.23456, peak_bytes=step * 7654321) for step in range(1, 1001)])
    for runs in (["long"], many):
        page = page_of(place, *runs)
        assert len(page.text) < 5e6 and len(page.runs) == len(runs), len(page.text)
    loss = page_of(place, "long").runs["long"]["series"]["loss"]
    assert max(loss["hi"]) == 50 and max(loss["v"]) < 50 and len(loss["v"]) <= 2000, max(loss["hi"])
    assert "200000 lines are drawn as" in " ".join(page_of(place, "long").runs["long"]["notes"])


def check_refusals(place):
    write(place, "run", [line(1, 3)])
    write(place, "none", ["words\n"])
    os.mkdir(place.path("folder"))
    os.mkdir(place.path("several"))
    write(place, "several/one", [line(1, 3)])
    with open(place.path("mine.html"), "w") as file:
        file.write("<!DOCTYPE html>\n<p>mine")
    for words, pieces in ((["nothere"], ["nothere: does not exist: name the output directory of a run"]), (["folder"], ["folder: is no output directory of a run", "metrics.jsonl"]),
                          (["several/"], ["name job.output_dir of a run; runs there: several/one\n"]), (["tokens.bin"], ["tokens.bin: is no output directory of a run"]), (["run", "none"], ["none/metrics.jsonl: none of its 1 line(s) is an object of a step"]),
                          (["run", "--out", "mine.html"], ["mine.html: is a file that zero_report has not written"]), (["run", "--out", "folder"], ["folder: is a folder"]),
                          (["run", "--life"], ["--life", "--live"]), ([], ["runs"]), (["--live", "nothere"], ["nothere: does not exist"])):
        said = report(place, *words, code=2).stderr
        assert said.count("\n") == 1 and said.startswith("error: ") and all(piece in said for piece in pieces), (words, said)
    assert not os.path.exists(place.path("report.html"))
    said = report(place, "run", "--out", "/proc/page.html", code=2).stderr
    assert said == "error: --out /proc/page.html: no file can be made in /proc, which belongs to the kernel: name another file\n", said
    said = report(place, "run", "--out", "nothere/page.html", code=2).stderr
    assert said == "error: --out nothere/page.html: the folder nothere is not there: make it, or name another file\n", said
    for _ in range(2):  # its own file is replaced
        report(place, "run")
    assert "report.html" in os.listdir(place.folder) and not [name for name in os.listdir(place.folder) if ".tmp-" in name]
    assert "--live" in report(place, "--help").stdout and report(place, "--version").stdout.startswith("zero_report ")


def check_live(place):
    """It follows a run to its end, or to a signal."""
    run = start(place, "out", training__steps="100000", checkpoint__interval="100000")
    wait_until(lambda: os.path.exists(place.path("out/metrics.jsonl")) and records_so_far(place, "out"))
    followers = [subprocess.Popen([place.bin + "/zero_report", "--live", "out", "--out", out], cwd=place.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()) for out in ("one.html", "two.html")]
    pages = [place.path(out) for out in ("one.html", "two.html")]
    wait_until(lambda: all(os.path.exists(page) for page in pages))
    first = Page(pages[0])
    assert first.read["live"] and first.read["refresh"] >= 3 and first.runs["out"]["state"] == "running", first.read
    wait_until(lambda: Page(pages[0]).runs["out"]["steps"] > first.runs["out"]["steps"])
    followers[1].send_signal(signal.SIGINT)
    said, error = followers[1].communicate(timeout=DEADLINE_SECONDS)
    assert followers[1].returncode == 0 and said == "two.html\n" and not error, (followers[1].returncode, said, error)
    assert not Page(pages[1]).read["live"] and Page(pages[1]).runs["out"]["state"] == "running", "it has a last page, which stays as it is"
    run.send_signal(signal.SIGUSR1)
    assert run.wait(timeout=DEADLINE_SECONDS) == 75
    said, error = followers[0].communicate(timeout=DEADLINE_SECONDS)
    assert followers[0].returncode == 0 and said == "one.html\n" and not error, (followers[0].returncode, said, error)
    last = Page(pages[0])
    assert not last.read["live"] and last.runs["out"]["state"] == "stopped" and last.runs["out"]["steps"] == records(place, "out")[-1]["step"], last.read


def check_live_without_room(place):
    """A page that cannot be written costs one warning, and is there again when it can."""
    run = start(place, "out", training__steps="100000", checkpoint__interval="100000")
    wait_until(lambda: os.path.exists(place.path("out/metrics.jsonl")) and records_so_far(place, "out"))
    os.mkdir(place.path("pages"))
    follower = subprocess.Popen([place.bin + "/zero_report", "--live", "out", "--out", "pages/one.html"], cwd=place.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    wait_until(lambda: os.path.exists(place.path("pages/one.html")))
    os.rename(place.path("pages"), place.path("away"))
    assert "warning: " in follower.stderr.readline()
    time.sleep(4)  # it is tried again, in silence
    os.rename(place.path("away"), place.path("pages"))
    assert "can be written again" in follower.stderr.readline()
    os.rename(place.path("pages"), place.path("away"))
    run.send_signal(signal.SIGUSR1)
    assert run.wait(timeout=DEADLINE_SECONDS) == 75
    _, error = follower.communicate(timeout=DEADLINE_SECONDS)
    lines = error.splitlines()
    assert follower.returncode == 1 and lines[-1].startswith("error: ") and "pages/one.html" in lines[-1] and len(lines) <= 2, (follower.returncode, error)


def main():
    args = arguments(__doc__)
    run_checks(args, globals(), lambda check, folder: check(ModelPlace(folder, args.bin, args.data, SECTIONS)))


if __name__ == "__main__":
    main()
