"""Judges what a run leaves: zero_evaluate against the run's own validation, on any layout of ranks; chats that are answered once and by
the file.

usage: test_evaluate.py BIN TESTS_DATA [-k NAME]        exits 1 when something is wrong
"""
import json
import os
import re
import shutil
import struct
import subprocess

from checks import arguments, environment, mpirun, run_checks
from test_carried import CHAT, PRESET, Place


def evaluate(place, *options, ranks=1, threads=1, code=0):
    """(standard output, standard error)"""
    done = subprocess.run([*(mpirun(ranks) if ranks > 1 else []), place.bin + "/zero_evaluate", *options], cwd=place.folder, capture_output=True, text=True, timeout=120,
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
    _, cut = evaluate(place, "out/run", "held_out.jsonl", "--seq-len", "16")
    assert re.search(r"warning: held_out.jsonl: .*3 of 3 examples are longer than --seq-len 16, and \d+ of their tokens do not count: raise --seq-len to judge them", cut), cut
    everything = json.loads(evaluate(place, "out/run", "held_out.jsonl", "--train-on", "all", "--json")[0])
    assert everything["tokens"] > found["tokens"], everything
    place.write("a.txt", "In the beginning was the word. " * 40)
    both = evaluate(place, "out/run", "held_out.jsonl", "a.txt", ranks=2)[0].splitlines()
    _, said = evaluate(place, "out/run", "a.txt", "--chat-template", "zephyr", "--train-on", "all", "--preference", "dpo", "--beta", "0.3", "--reference", "out/run", "--token-dtype", "uint32", ranks=2)
    found = re.findall(r"warning: (--\S+) has no effect: no file holds (.*)", said)
    assert found == [("--chat-template", "conversations"), ("--train-on", "conversations"), ("--preference", "preferences"), ("--beta", "preferences"), ("--reference", "preferences"),
                     ("--token-dtype", "ids (.bin)")], said
    assert len(both) == 2 and both[0].startswith("held_out.jsonl: loss ") and "perplexity" in both[1] and "sequences" in both[1], both


def check_run_settings(place):
    """A run's checkpoint, folder and model are evaluated as the run validates: by its template and in its precision."""
    trained(place)  # ChatML, by name
    for precision, tolerance in (("fp32", 1e-6), ("bf16", 1e-3)):  # a row alone is rounded otherwise in bf16
        place.train("out/run", PRESET | {"model.vocab_size": 32002, "data.validation": ["held_out.jsonl"], "training.validation_interval": 2, "training.precision": precision, "checkpoint.export_dtype": "fp32"},
                    "--overwrite", template="zephyr", tokenizer="adding/tokenizer.model")
        for model in ("out/run/checkpoints", "out/run", "out/run/model", "out/run/checkpoints/step-00000002"):
            said, log = evaluate(place, model, "held_out.jsonl", "--seq-len", "64", "--json")
            assert abs(json.loads(said)["loss"] - validation_loss(place)) < tolerance and f"evaluated in {precision}" in log, (model, precision, said, validation_loss(place))
    other = json.loads(evaluate(place, "out/run/checkpoints", "held_out.jsonl", "--seq-len", "64", "--json", "--chat-template", "alpaca")[0])["loss"]
    assert abs(other - validation_loss(place)) > 1e-3, other
    os.rename(place.path("out/run/model"), place.path("stored"))  # a model of nobody's run: as it is stored
    assert "stored: evaluated in fp32" in evaluate(place, "stored", "held_out.jsonl")[1]


def check_full_output(place):
    """What standard output loses is no success."""
    trained(place)
    place.write("asks.jsonl", json.dumps({"messages": [{"role": "user", "content": "Who?"}]}) + "\n")
    programs = [["zero_evaluate", "out/run", "held_out.jsonl"], ["zero_generate", "out/run", "--prompt", "Who", *CHAT], ["zero_generate", "out/run", "--prompts", "asks.jsonl", *CHAT],
                ["zero_generate", "out/run", "--chat", "--prompt", "Who?", *CHAT], ["zero_train", "config.toml", "--dry-run", "--set", "job.output_dir=out/never"], ["zero_train", "config.toml", "--preview", "1", "--set", "job.output_dir=out/never"],
                ["zero_export", "--help"], ["zero_train", "--version"]]
    for program in programs:
        command = [os.path.join(place.bin, program[0]), *program[1:]]
        with open("/dev/full", "w") as full:
            done = subprocess.run(command, cwd=place.folder, stdout=full, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, timeout=120, env=environment())
        assert done.returncode == 1 and done.stderr.count("error: ") == 1 and "standard output cannot be written" in done.stderr, (program, done)


def check_adapter(place):
    trained(place)
    place.train("out/lora", {"model.path": "out/run/model", "lora.r": 2, "data.validation": ["held_out.jsonl"], "training.validation_interval": 2})
    last = [json.loads(line) for line in place.read("out/lora/metrics.jsonl").splitlines()][-1]["validation_loss"]
    options = ("held_out.jsonl", "--seq-len", "64", "--precision", "fp32", "--json")
    found = json.loads(evaluate(place, "out/run", *options, "--adapter", "out/lora", ranks=2)[0])["loss"]
    alone = json.loads(evaluate(place, "out/run", *options)[0])["loss"]
    assert abs(found - last) < 1e-5 and alone != found, (found, last, alone)
    os.remove(place.path("out/lora/config.toml"))
    os.symlink("/proc/self/mem", place.path("out/lora/config.toml"))  # a regular file that cannot be read
    _, err = evaluate(place, "out/lora", "held_out.jsonl", "--adapter", "out/lora", code=2)
    assert "out/lora/config.toml: cannot be read" in err, err


def check_refusals(place):
    trained(place)
    for options, pieces in ((("out/nothere", "held_out.jsonl"), ["out/nothere"]), (("out/run", "nothere.jsonl"), ["nothere.jsonl"]),
                            (("out/run", "held_out.jsonl", "--seq-len", "999"), ["--seq-len 999", "256 tokens"]), (("out/run", "held_out.csv"), ["held_out.csv must end in .txt", "scripts/to_jsonl held_out.csv --to held_out.jsonl"]),
                            (("out/run", "asks.jsonl"), ["asks.jsonl: nothing is left to judge with --seq-len 256 (1 example, ", "may say that none counts"]),
                            (("out/run", "held_out.jsonl", "--seq-len", "4"), ["nothing is left to judge with --seq-len 4 (3 examples, ", "lies beyond --seq-len: raise it"]),
                            (("out/run", "one.bin"), ["one.bin has 1 token, too few for one row: at least 2 are needed, one to predict the other"])):
        place.write("asks.jsonl", json.dumps({"messages": [{"role": "user", "content": "Who?"}]}) + "\n")
        with open(place.path("one.bin"), "wb") as file:
            file.write(b"\5\0")
        _, err = evaluate(place, *options, ranks=2, code=2)
        errors = [line for line in err.splitlines() if line.startswith("error: ")]
        assert len(errors) == 1 and all(piece in errors[0] for piece in pieces) and "training.seq_len" not in err, (options, err)


def check_a_loss_that_is_not_finite(place):
    """Told with exit code 1: each weight is finite, and the logits are not."""
    trained(place)
    shutil.copytree(place.path("out/run/model"), place.path("huge"))
    with open(place.path("huge/model.safetensors"), "rb") as file:
        data = bytearray(file.read())
    size = struct.unpack("<Q", data[:8])[0]
    begin, end = json.loads(data[8:8 + size])["lm_head.weight"]["data_offsets"]
    data[8 + size + begin:8 + size + end] = struct.pack("<f", 3e38) * ((end - begin) // 4)
    os.chmod(place.path("huge/model.safetensors"), 0o644)
    with open(place.path("huge/model.safetensors"), "wb") as file:
        file.write(data)
    for ranks in (1, 2):
        out, err = evaluate(place, "huge", "held_out.jsonl", ranks=ranks, code=1)
        assert out.count("held_out.jsonl: loss ") == 1 and err.count("held_out.jsonl: the loss is not finite") == 1, (out, err)


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
    # the conversation is shown as it was given, tools and their calls included
    tool = {"type": "function", "function": {"name": "rain", "description": "Tells of rain.", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}
    calls = [{"type": "function", "function": {"name": "rain", "arguments": {"city": "Rome"}}}]
    place.write("with_tools", "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}{{ m.role }}: {{ m.content }}{% if m.tool_calls %}{{ m.tool_calls | tojson }}{% endif %}{{ eos_token }}\n{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}")
    given = {"messages": [{"role": "user", "content": "Rain?"}, {"role": "assistant", "content": "", "tool_calls": calls}, {"role": "tool", "content": "no"}], "tools": [tool]}
    place.write("calls.jsonl", json.dumps(given) + "\n")
    shown = json.loads(place.run("zero_generate", "out/run", "--prompts", "calls.jsonl", "--chat-template", "with_tools", "--max-new-tokens", "2")[0])
    assert {key: shown[key] for key in given} == given, shown
    place.write("texts.jsonl", json.dumps({"text": "Fire"}) + "\n")
    place.refused("zero_generate", "out/run", "--prompts", "texts.jsonl", pieces=["texts.jsonl:1: is no conversation"])
    place.refused("zero_generate", "out/run", "--prompt", "x", "--chat-template", "chatml", pieces=["--chat-template is for --chat"])
    place.refused("zero_generate", "out/run", "--chat", "--prompt", os.fsdecode(b"a\xffb"), pieces=["--prompt: byte 1 (0xFF) is not UTF-8"])
    silent = ("zero_generate", "out/run", "--chat", "--prompt", "", *CHAT)
    assert place.run(*silent, text="")[0] == place.run(*silent, text="Who made fire?\n")[0] != ""  # an empty message, and no line is read
    # a template whose end is no special token serves neither form of a chat
    place.write("no_end", "{% for m in messages %}### {{ m['role'] }}\n{{ m['content'] }} STOP\n{% endfor %}{% if add_generation_prompt %}### assistant\n{% endif %}")
    for form in (("--chat", "--prompt", "Who?"), ("--prompts", "asks.jsonl")):
        place.refused("zero_generate", "out/run", *form, "--chat-template", "no_end", pieces=["ends answers with STOP, which is no special token of the tokenizer"])
    # nor does a prompt that is continued as it stands need a template that can be read
    place.write("out/run/model/tokenizer_config.json", json.dumps(place.json("out/run/model/tokenizer_config.json") | {"chat_template": [{}]}))
    place.refused("zero_generate", "out/run", "--chat", pieces=["must be a string, or a list of objects"])
    plain = place.run("zero_generate", "out/run", "--prompt", "Who", *CHAT)
    assert plain[0].startswith("Who") and "has a chat template" not in plain[1], plain


if __name__ == "__main__":
    args = arguments(__doc__)
    run_checks(args, globals(), lambda check, folder: check(Place(folder, args.bin, args.data)))
