"""Templates in the styles of many model families on random conversations, by zero_tokenize and by transformers: texts and masks of generation blocks.

usage: python compare.py ZERO_TOKENIZE FOLDER [--conversations 1000] [--seed 1] [--templates DIR]      (transformers 5, jinja2 3.1)
FOLDER holds a tokenizer.json. The templates are this folder's own, written with the constructs of the families that they stand for. A conversation counts as
equal when both give the same text and mask, or both fail. Prints a line per template, shows the first that differ, and exits 1 when there are any.
"""
import argparse, glob, json, os, random, subprocess, sys
from transformers import AutoTokenizer

WORDS = ["a", "Hello", "é", "日本語", "🦙", "  two", "\n", "\n\n", "\t", "<think>", "</think>", "<think>\nhm\n</think>\n\nok", "{{ x }}", "{% if %}", "<b>&'\"", "<tool_response>", "</tool_response>", "\\n", "\u00a0", "ß", "1.0", "[INST]", "</s>", "\u2028", "it's", ""]
KEYS = ["name", "type", "items", "keys", "values", "é", "a b", "default", "enum", "description"]


def text(rng):
    return " ".join(rng.choices(WORDS, k=rng.randrange(5)))


def value(rng, depth=0):
    kind = rng.randrange(9 if depth < 3 else 6)
    if kind < 6:
        return [None, True, rng.randrange(-5, 10**rng.randrange(1, 15)), rng.choice([0.5, 1e-7, -3e10, 1e16, 2.0, 0.1]), text(rng), False][kind]
    if kind == 6:
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {rng.choice(KEYS): value(rng, depth + 1) for _ in range(rng.randrange(4))}


def schema(rng, depth=0):
    kind = rng.choice(["string", "number", "integer", "boolean", "array", "object", ["string", "null"], None] if depth < 3 else ["string", "integer"])
    out = {} if kind is None else {"type": kind}
    if kind == "string" and rng.random() < 0.4:
        out["enum"] = [w for w in rng.choices(WORDS, k=2)]
    if kind == "array" and rng.random() < 0.8:
        out["items"] = schema(rng, depth + 1)
    if kind == "object" and rng.random() < 0.8:
        out["properties"] = {k: schema(rng, depth + 1) for k in rng.sample(KEYS, rng.randrange(4))}
        out["required"] = rng.sample(KEYS, 2)
    for key, make in (("description", lambda: text(rng)), ("default", lambda: value(rng, 2)), ("nullable", lambda: True), ("oneOf", lambda: [schema(rng, 3), {"type": "object"}])):
        if rng.random() < 0.15:
            out[key] = make()
    return out


def tool(rng):
    function = {"name": rng.choice(["get", "add_up", "stop"]), "description": text(rng) or "d", "parameters": {"type": "object", "properties": {k: schema(rng) for k in rng.sample(KEYS, rng.randrange(4))}, "required": rng.sample(KEYS, 1)}}
    if rng.random() < 0.2:
        function["return"] = schema(rng)
    if rng.random() < 0.2:
        del function[rng.choice(list(function))]
    return {"type": "function", "function": function}


def message(rng, role):
    out = {"role": role, "content": text(rng)}
    if rng.random() < 0.08:
        out["content"] = rng.choice([None, [{"type": "text", "text": text(rng)}, {"type": "image"}], {"content": text(rng)}, 5])
    if role == "assistant" and rng.random() < 0.3:
        calls = [{"type": "function", "id": rng.choice(["abc123XYZ", "x", "id0000001"]), "function": {"name": "get", "arguments": rng.choice([{k: value(rng) for k in rng.sample(KEYS, 2)}, '{"a": 1}'])}} for _ in range(rng.choice([1, 1, 1, 2, 0]))]
        out["tool_calls"] = rng.choice([calls, calls, None])
        if rng.random() < 0.5:
            out["content"] = None
    if role == "assistant" and rng.random() < 0.3:
        out[rng.choice(["reasoning_content", "thinking", "reasoning"])] = rng.choice([text(rng), None])
    if role == "tool":
        out["tool_call_id"] = rng.choice(["abc123XYZ", "id0000001"])
    if rng.random() < 0.03:
        out.pop("content")
    return out


def conversation(rng):
    messages = [message(rng, "system")] if rng.random() < 0.4 else []
    for _ in range(rng.randrange(1, 4)):
        messages.append(message(rng, "user"))
        if rng.random() < 0.85:
            messages.append(message(rng, "assistant"))
            while messages[-1].get("tool_calls") and rng.random() < 0.8 and len(messages) < 12:
                messages += [message(rng, "tool") for _ in range(rng.choice([1, 1, 2]))] + [message(rng, "assistant")]
    if rng.random() < 0.05:
        messages.append(message(rng, rng.choice(["system", "assistant", "strange"])))
    out = {"messages": messages, "add_generation_prompt": rng.random() < 0.5}
    if rng.random() < 0.5:
        out["tools"] = [tool(rng) for _ in range(rng.randrange(3))]
    names = {"enable_thinking": False, "tools_in_user_message": False, "builtin_tools": ["code", "get"], "date_string": "1 May", "documents": [{"title": text(rng), "text": value(rng)}], "reasoning_effort": "high"}
    out["variables"] = {k: names[k] for k in names if rng.random() < 0.15}
    return out


def theirs(tokenizer, template, case):
    from transformers.utils.chat_template_utils import render_jinja_template
    messages = [{k: v for k, v in m.items() if v is not None} for m in case["messages"]]
    try:
        texts, spans = render_jinja_template([messages], tools=case.get("tools"), chat_template=template, return_assistant_tokens_mask=True, add_generation_prompt=case["add_generation_prompt"], **{**tokenizer.special_tokens_map, **case["variables"]})
        if "generation %}" not in template:
            return texts[0], None
        ids = tokenizer(texts[0], add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
        return texts[0], [int(any(a < end and b > begin for begin, end in spans[0])) for a, b in ids]
    except Exception as error:  # of any kind: the program must fail, too
        return None, repr(error)


def compare(args, tokenizer, path):
    rng, template = random.Random(args.seed), open(path).read()
    cases = [conversation(rng) for _ in range(args.conversations)]
    run = subprocess.run([args.program, args.folder, "--template", path], input="".join(json.dumps(c) + "\n" for c in cases).encode(), capture_output=True, check=True)
    replies, wrong, failed = [json.loads(line) for line in run.stdout.decode().split("\n")[:-1]], 0, 0
    assert len(replies) == len(cases)
    for case, got in zip(cases, replies):
        expected, more = theirs(tokenizer, template, case)
        failed += expected is None
        if got.get("text") != expected or (expected is not None and got["mask"] != more):
            wrong += 1
            if wrong < 4:
                print("  ", json.dumps(case)[:1500], "\n    expected", repr(expected)[:1500], more, "\n    got     ", repr(got.get("text", got))[:1500])
    print(f"{os.path.basename(path)}: {wrong} of {len(cases)} differ; {failed} fail in both or are refused", flush=True)
    return wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program"), parser.add_argument("folder"), parser.add_argument("--conversations", type=int, default=1000), parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--templates", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "templates"))
    args = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(args.folder)
    sys.exit(any([compare(args, tokenizer, path) for path in sorted(glob.glob(os.path.join(args.templates, "*.jinja")))]))
