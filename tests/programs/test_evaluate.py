"""Judges what a run leaves: zero_evaluate against the run's own validation, on any layout of ranks; chats that are answered once and by
the file.

usage: test_evaluate.py BIN TESTS_DATA [-k NAME]        exits 1 when something is wrong
"""
import json
import subprocess

from checks import arguments, environment, mpirun, run_checks
from test_carried import CHAT, PRESET, Place


def evaluate(place, *options, ranks=1, threads=1, code=0):
    """(standard output, standard error)"""
    done = subprocess.run([*mpirun(ranks), place.bin + "/zero_evaluate", *options], cwd=place.folder, capture_output=True, text=True, timeout=120,
                          env=environment(OMP_NUM_THREADS=str(threads)))
    assert done.returncode == code, (options, done.returncode, done.stdout, done.stderr)
    return done.stdout, done.stderr


def trained(place, **more):
    held_out = [{"messages": [{"role": "user", "content": f"Who made {what}?"}, {"role": "assistant", "content": f"The {what} was made."}]} for what in ("fire", "water", "gold")]
    place.write("held_out.jsonl", "".join(json.dumps(one) + "\n" for one in held_out))
    place.train("out/run", PRESET | {"model.vocab_size": 32002, "data.validation": ["held_out.jsonl"], "training.validation_interval": 2} | more, template="chatml",
                tokenizer="adding/tokenizer.model")


def validation_loss(place):
    return [json.loads(line) for line in place.read("out/run/metrics.jsonl").splitlines()][-1]["validation_loss"]


def check_loss(place):
    trained(place)
    said, _ = evaluate(place, "out/run", "held_out.jsonl", "--seq-len", "64", "--precision", "fp32", "--json")
    found = json.loads(said)
    assert abs(found["loss"] - validation_loss(place)) < 1e-6, (found, validation_loss(place))
    assert found["sequences"] == 3 and found["tokens"] > 9 and found["file"] == "held_out.jsonl", found
    for ranks, threads in ((1, 2), (2, 1), (3, 1), (4, 1)):  # four ranks: one has no sequence
        assert evaluate(place, "out/run", "held_out.jsonl", "--seq-len", "64", "--precision", "fp32", "--json", ranks=ranks, threads=threads)[0] == said, ranks
    everything = json.loads(evaluate(place, "out/run", "held_out.jsonl", "--train-on", "all", "--json")[0])
    assert everything["tokens"] > found["tokens"], everything
    place.write("a.txt", "In the beginning was the word. " * 40)
    both = evaluate(place, "out/run", "held_out.jsonl", "a.txt", ranks=2)[0].splitlines()
    assert len(both) == 2 and both[0].startswith("held_out.jsonl: loss ") and "perplexity" in both[1] and "sequences" in both[1], both


def check_adapter(place):
    trained(place)
    place.train("out/lora", {"model.path": "out/run/model", "lora.r": 2, "data.validation": ["held_out.jsonl"], "training.validation_interval": 2})
    last = [json.loads(line) for line in place.read("out/lora/metrics.jsonl").splitlines()][-1]["validation_loss"]
    options = ("held_out.jsonl", "--seq-len", "64", "--precision", "fp32", "--json")
    found = json.loads(evaluate(place, "out/run", *options, "--adapter", "out/lora", ranks=2)[0])["loss"]
    alone = json.loads(evaluate(place, "out/run", *options)[0])["loss"]
    assert abs(found - last) < 1e-5 and alone != found, (found, last, alone)


def check_refusals(place):
    trained(place)
    for options, pieces in ((("out/nothere", "held_out.jsonl"), ["out/nothere"]), (("out/run", "nothere.jsonl"), ["nothere.jsonl"]),
                            (("out/run", "held_out.jsonl", "--seq-len", "999"), ["--seq-len 999", "256 tokens"]), (("out/run", "held_out.csv"), ["held_out.csv"]),
                            (("out/run", "asks.jsonl"), ["asks.jsonl"])):
        place.write("asks.jsonl", json.dumps({"messages": [{"role": "user", "content": "Who?"}]}) + "\n")
        _, err = evaluate(place, *options, ranks=2, code=2)
        errors = [line for line in err.splitlines() if line.startswith("error: ")]
        assert len(errors) == 1 and all(piece in errors[0] for piece in pieces), (options, err)


def check_chats(place):
    trained(place)
    asks = ["Who made fire?", "Who made the light?"]
    answers = [place.run("zero_generate", "out/run", "--chat", *CHAT, text=ask + "\n")[0] for ask in asks]
    assert [place.run("zero_generate", "out/run", "--chat", "--prompt", ask, *CHAT)[0] for ask in asks] == answers, answers
    lines = [{"messages": [{"role": "user", "content": asks[0]}]}, {"messages": [{"role": "user", "content": asks[1]}, {"role": "assistant", "content": "Nobody."}]}]
    place.write("asks.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    shown = [json.loads(line) for line in place.run("zero_generate", "out/run", "--prompts", "asks.jsonl", *CHAT)[0].splitlines()]
    assert [one["text"] + "\n" for one in shown] == answers, (shown, answers)
    assert shown[0]["messages"] == lines[0]["messages"] and "reference" not in shown[0] and shown[1]["reference"] == "Nobody." and len(shown[1]["messages"]) == 1, shown
    place.write("texts.jsonl", json.dumps({"text": "Fire"}) + "\n")
    place.refused("zero_generate", "out/run", "--prompts", "texts.jsonl", pieces=["texts.jsonl:1: is no conversation"])
    place.refused("zero_generate", "out/run", "--prompt", "x", "--chat-template", "chatml", pieces=["--chat-template is for --chat"])


if __name__ == "__main__":
    args = arguments(__doc__)
    run_checks(args, globals(), lambda check, folder: check(Place(folder, args.bin, args.data)))
