"""zero_tokenize: every line is answered in its place, by what transformers says, a bad one by an error.

usage: test_tokenize.py BIN_DIR TESTS_DATA [-k NAME]
"""
import json
import os
import shutil
import subprocess

from checks import arguments, environment, run_checks


def tokenize(args, folder, lines, *more):
    run = subprocess.run([os.path.join(args.bin, "zero_tokenize"), folder, *more], input="".join(line + "\n" for line in lines).encode(),
                         capture_output=True, env=environment(), timeout=120)
    return run.returncode, [json.loads(line) for line in run.stdout.decode().split("\n")[:-1]], run.stderr.decode()


def check_cases_are_answered_as_by_transformers(args, folder):
    for name in ("gpt2", "llama3", "mistral", "qwen"):
        place = os.path.join(args.data, "pipelines", name)
        with open(os.path.join(place, "cases.json")) as file:
            cases = json.load(file)
        both = cases["encode"] + cases["decode"]
        lines = [json.dumps({"text": case["text"]}) for case in cases["encode"]] + [json.dumps({"ids": case["ids"]}) for case in both]
        expected = [{"ids": case["ids"], "plain": case["plain"]} for case in cases["encode"]]
        expected += [{"text": case["decoded"], "skipped": case["skipped"]} for case in both]
        assert tokenize(args, place, lines) == (0, expected, ""), name


def check_a_bad_line_is_told_of_and_the_next_is_read(args, folder):
    place = os.path.join(args.data, "pipelines", "gpt2")
    bad = ["{no json", "", "[1]", '{"text": 1}', '{"ids": [-1]}', '{"ids": ["1"]}', '{"text": "a", "ids": []}', '{"messages": []}', '{"text": "\\ud800"}']
    code, answers, _ = tokenize(args, place, [*bad, '{"ids": []}', '{"ids": [99999, 64, 1501]}'])
    assert code == 0 and len(answers) == len(bad) + 2, answers
    for number, answer in enumerate(answers[:len(bad)], 1):
        assert list(answer) == ["error"] and answer["error"].count(f"line {number}: ") == 1, answer
    letter, = tokenize(args, place, ['{"ids": [64]}'])[1]
    assert letter["text"] and answers[len(bad):] == [{"text": "", "skipped": ""}, {**letter, "unknown": [99999, 1501]}], answers


def check_conversations_are_answered_as_by_transformers(args, folder):
    for name in ("brackets", "headers", "thoughts", "turns"):
        place = os.path.join(args.data, "chat", name)
        with open(os.path.join(place, "cases.json")) as file:
            cases = json.load(file)
        lines, expected = [], []
        for case in cases["cases"]:
            for key, prompt in (("text", False), ("prompt", True)):
                lines.append(json.dumps({k: case[k] for k in ("messages", "tools", "variables") if k in case} | {"add_generation_prompt": prompt}))
                expected.append((key, case))
        code, answers, _ = tokenize(args, os.path.join(args.data, "pipelines", cases["tokenizer"]), lines, "--template", os.path.join(place, "template.jinja"))
        assert code == 0 and len(answers) == len(expected), name
        for (key, case), answer in zip(expected, answers):
            prefix = "prompt_" if key == "prompt" else ""
            if key not in case:
                assert list(answer) == ["error"] and case.get(prefix + "error", "fails") in answer["error"], (case["name"], answer)
                continue
            assert (answer["text"], answer["ids"]) == (case[key], case[prefix + "ids"]), (case["name"], answer)
            assert (answer["mask"] is not None) == cases["generation"] and (prefix or answer["mask"] == case.get("mask")), (case["name"], answer)


def check_a_template_that_is_not_there_is_refused(args, folder):
    place = os.path.join(args.data, "pipelines", "gpt2")
    assert tokenize(args, place, [], "--template", os.path.join(folder, "x"))[0] != 0
    code, answers, _ = tokenize(args, place, ['{"messages": [{"role": "user", "content": "a"}]}'])
    assert code == 0 and "has no chat template" in answers[0]["error"], answers


def check_a_file_that_cannot_be_executed_is_refused(args, folder):
    code, _, message = tokenize(args, os.path.join(args.data, "tiny", "model"), [])
    assert code == 2 and "tokenizer.json" in message, message
    shutil.copytree(os.path.join(args.data, "pipelines", "qwen"), os.path.join(folder, "m"))
    path = os.path.join(folder, "m", "tokenizer.json")
    with open(path) as file:
        content = json.load(file)
    content["pre_tokenizer"]["pretokenizers"][0]["type"] = "UnicodeScripts"
    with open(path, "w") as file:
        json.dump(content, file)
    code, _, message = tokenize(args, os.path.join(folder, "m"), [])
    assert code == 2 and "pretokenizers[0]" in message and "UnicodeScripts" in message and path in message, message


def check_training_and_prompts_take_the_same_ids(args, folder):
    """A text and examples as they are trained, and what a model made so continues."""
    tokenizer = os.path.join(args.data, "pipelines", "llama3")
    text = "In the beginning God created the heaven and the earth. \U0001f999\n" * 20
    with open(os.path.join(folder, "a.txt"), "w") as file:
        file.write(text)
    with open(os.path.join(folder, "a.jsonl"), "w") as file:
        file.write(json.dumps({"text": text[:60]}) + "\n")
    _, (whole, short), _ = tokenize(args, tokenizer, [json.dumps({"text": text}), json.dumps({"text": text[:60]})])
    config = {"job": {"output_dir": "out"}, "model": {"preset": "llama-tiny", "vocab_size": 1809, "max_position_embeddings": 64},
              "data": {"train": ["a.jsonl"], "tokenizer": tokenizer}, "optimizer": {"name": "sgd", "lr": 0.001},
              "training": {"seq_len": 32, "steps": 2, "global_batch_size": 1, "local_batch_size": 1, "precision": "fp32"}}
    run = lambda *command: subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment(), timeout=120)

    def train(*more):
        with open(os.path.join(folder, "config.toml"), "w") as file:
            for section, keys in config.items():
                file.write(f"[{section}]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in keys.items()))
        done = run(os.path.join(args.bin, "zero_train"), "config.toml", *more)
        assert done.returncode == 0, done.stderr
        return done.stdout

    example, = [json.loads(line) for line in train("--preview", "1", "--json").splitlines()]
    end = example["ids"][-1]
    assert example["ids"] == short["ids"] + [end] and end not in short["ids"], (example, short)
    config["data"]["train"] = ["a.txt"]
    train()
    cache, = [os.path.join(place, name) for place, _, names in os.walk(os.path.join(folder, "out", "token_cache")) for name in names
              if os.path.getsize(os.path.join(place, name)) >= 2 * len(whole["ids"])][:1]
    with open(cache, "rb") as file:
        content = file.read()
    ids = whole["ids"] + [end]
    assert b"".join(id.to_bytes(2, "little") for id in ids) in content, cache
    model = os.path.join(folder, "out", "model")
    assert tokenize(args, model, [json.dumps({"text": text})])[1] == [whole]  # it carries its tokenizer
    done = run(os.path.join(args.bin, "zero_generate"), model, "--prompt", "In the beginning", "--max-new-tokens", "8", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    _, (made,), _ = tokenize(args, model, [json.dumps({"ids": answer["ids"]})])
    assert answer["text"] == made["skipped"], (answer, made)


def check_tools_and_a_template_of_a_file_are_trained_carried_and_asked(args, folder):
    """An example with tools, calls, results and thoughts, by a template that is a file: as zero_tokenize says, in training and in what a run leaves."""
    tokenizer, template = os.path.join(args.data, "pipelines", "qwen"), os.path.join(args.data, "chat", "thoughts", "template.jinja")
    tools = [{"type": "function", "function": {"name": "add", "description": "z", "parameters": {"type": "object", "properties": {"b": {"type": "integer"}, "a": {"type": "integer"}}, "required": ["a"]}}}]
    line = {"messages": [{"role": "user", "content": "1 + 2?"},
                         {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": [{"type": "function", "function": {"name": "add", "arguments": {"b": 2, "a": 1}}}]},
                         {"role": "tool", "content": "3"}, {"role": "assistant", "content": "3.", "reasoning_content": "so"}], "tools": tools}
    with open(os.path.join(folder, "a.jsonl"), "w") as file:
        file.write(json.dumps(line | {"tools": json.dumps(tools), "chat_template_kwargs": {"think": True}}) + "\n")
    with open(os.path.join(folder, "tools.json"), "w") as file:
        json.dump(tools, file)
    shutil.copy(template, os.path.join(folder, "own.jinja"))
    with open(os.path.join(folder, "config.toml"), "w") as file:
        file.write(f'[job]\noutput_dir = "out"\n[model]\npreset = "llama-tiny"\nvocab_size = 1810\nmax_position_embeddings = 2048\n[data]\ntrain = ["a.jsonl"]\ntokenizer = "{tokenizer}"\n'
                   'chat_template = "own.jinja"\n[training]\nsteps = 1\nseq_len = 1024\nglobal_batch_size = 1\nlocal_batch_size = 1\nprecision = "fp32"\n[optimizer]\nname = "sgd"\nlr = 0.001\n')
    run = lambda *command, **more: subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment(), timeout=120, **more)
    _, (told,), _ = tokenize(args, tokenizer, [json.dumps(line | {"variables": {"think": True}})], "--template", template)
    done = run(os.path.join(args.bin, "zero_train"), "config.toml", "--preview", "1", "--json")
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert (shown["text"], shown["ids"], shown["trained"]) == (told["text"], told["ids"], told["mask"]) and 1 in told["mask"] and '"a":1,"b":2' in told["text"], (shown, told)
    done = run(os.path.join(args.bin, "zero_train"), "config.toml")
    assert done.returncode == 0, done.stderr
    with open(template) as file, open(os.path.join(folder, "out", "model", "chat_template.jinja")) as carried:
        assert file.read() == carried.read()
    chat = [os.path.join(args.bin, "zero_generate"), "out/model", "--chat", "--max-new-tokens", "4"]
    done = run(*chat, "--tools", "tools.json", "--chat-template-kwargs", '{"think": false}', input="1 + 2?\n/tool 3\n")
    assert done.returncode == 0 and done.stdout.count("\n") >= 2 and "would be lost" not in done.stderr, done
    done = run(*chat, "--chat-template-kwargs", '{"nowhere": 1}', input="Hi\n")
    assert done.returncode == 2 and '--chat: "chat_template_kwargs": "nowhere" would be lost' in done.stderr and "read in" not in done.stderr, done
    done = run(*chat, "--chat-template", "zephyr", "--tools", "config.toml", input="Hi\n")
    assert done.returncode == 2 and "config.toml: not valid JSON" in done.stderr, done


if __name__ == "__main__":
    args = arguments(__doc__)
    run_checks(args, globals(), lambda check, folder: check(args, folder))
