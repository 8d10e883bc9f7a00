"""Training examples with tools, calls, thoughts, results of tools and variables, by zero_train's preview and by transformers: texts, ids and masks.

usage: python compare_examples.py BIN FOLDER [--conversations 500] [--seed 1] [--templates FILE...]      (transformers 5, jinja2 3.1)
FOLDER holds a tokenizer.json, to which the text that ends an answer of a template is added as a special token, without which zero_train refuses the two; the templates are compare.py's when none is named. Theirs: apply_chat_template for text and ids, the spans of its generation
blocks where the template has some (its own mask has a token of an empty block, too), else the assistant's answers found here anew from apply_chat_template over prefixes. An example counts as equal when text, ids and mask are
those, or when both refuse it. What one side alone refuses is counted apart, by its reason. Exits 1 when any example differs, or is refused for another
reason than docs/data.md gives.
"""
import argparse, collections, glob, json, os, random, re, shutil, subprocess, sys, tempfile
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from compare import conversation
from transformers import AutoTokenizer
from transformers.utils.chat_template_utils import render_jinja_template

BY_RULE = ["would be lost", "cannot be told", "only text is trained", "unknown role", "must be a text", "\"content\" is missing", "parts, and the chat template", "must be a list of objects", "is no special token", "an empty list", "is not read"]


def mask_of(tokenizer, text, spans):
    offsets = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    mask = [int(any(a < end and b > begin for begin, end in spans)) for a, b in offsets]
    return [0] + mask[1:]


def theirs(tokenizer, template, line):
    """Text, ids and mask; None where it is refused."""
    def render(messages, prompt):
        given = dict(tools=line.get("tools"), chat_template=template, **line.get("chat_template_kwargs", {}))
        return tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=prompt, **given)
    try:
        # apply_chat_template leaves out keys that are null; render_jinja_template does not
        messages = [{key: value for key, value in message.items() if value is not None} for message in line["messages"]]
        text = render(messages, False)
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        if "generation %}" in template:
            _, spans = render_jinja_template([messages], tools=line.get("tools"), chat_template=template, return_assistant_tokens_mask=True,
                                             **tokenizer.special_tokens_map, **line.get("chat_template_kwargs", {}))
            return text, ids, mask_of(tokenizer, text, [(begin, end) for begin, end in spans[0] if begin < end])
        spans = []
        for i, message in enumerate(messages):
            if message["role"] != "assistant":
                continue
            before, bare, after = render(messages[:i], True), render(messages[:i], False), render(messages[:i + 1], False)
            if not text.startswith(before) or not text.startswith(after):
                return None
            answer = text[len(before):max(len(before), len(after))]
            begin = len(before) + (len(answer) - len(answer.lstrip()) if before == bare else 0)
            spans.append((begin, len(before) + len(answer.rstrip())))
        return text, ids, mask_of(tokenizer, text, spans)
    except Exception:  # of any kind
        return None


def add_special_token(folder, content):
    path = os.path.join(folder, "tokenizer.json")
    with open(path) as file:
        tokenizer = json.load(file)
    assert content not in [token["content"] for token in tokenizer["added_tokens"]], content
    number = 1 + max([token["id"] for token in tokenizer["added_tokens"]] + list(tokenizer["model"]["vocab"].values()))
    tokenizer["added_tokens"].append({"id": number, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True})
    with open(path, "w") as file:
        json.dump(tokenizer, file)


def ours(args, template, lines, folder):
    """What zero_train shows of each line, or why it refuses it. A line that is refused ends a preview: the others are asked again without it."""
    answers, left = {}, list(enumerate(lines))
    config = os.path.join(folder, "config.toml")
    with open(config, "w") as file:
        file.write(f'[job]\noutput_dir = "{folder}/out"\n[model]\npreset = "llama-tiny"\nvocab_size = 100000\nmax_position_embeddings = 65536\n[data]\ntrain = ["{folder}/lines.jsonl"]\n'
                   f'tokenizer = "{folder}"\nchat_template = "{template}"\n[training]\nsteps = 1\nseq_len = 60000\nprecision = "fp32"\n')
    while left:
        with open(os.path.join(folder, "lines.jsonl"), "w") as file:
            file.write("".join(json.dumps(line) + "\n" for _, line in left))
        run = subprocess.run([os.path.join(args.bin, "zero_train"), config, "--preview", str(len(left)), "--json"], capture_output=True, text=True)
        if run.returncode == 0:
            answers |= {number: json.loads(shown) for (number, _), shown in zip(left, run.stdout.split("\n"))}
            break
        place = run.stderr.find("lines.jsonl:")
        if "which is no special token of" in run.stderr and place < 0:
            add_special_token(folder, re.search("ends an answer with (.+), which is no special token", run.stderr).group(1))
            continue
        assert place >= 0, run.stderr[-2000:]
        at = int(run.stderr[place:].split(":")[1]) - 1
        answers[left[at][0]] = run.stderr[place:].strip()
        del left[at]
    return [answers[i] for i in range(len(lines))]


def compare(args, template):
    rng, source, counts, wrong = random.Random(args.seed), open(template).read(), collections.Counter(), 0
    lines = []
    for _ in range(args.conversations):
        case = conversation(rng)
        lines.append({"messages": case["messages"], "chat_template_kwargs": {k: v for k, v in case["variables"].items() if k != "documents"}} | ({"tools": case["tools"]} if "tools" in case else {}))
    with tempfile.TemporaryDirectory() as folder:
        for name in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(os.path.join(args.folder, name), folder)
        answers = ours(args, template, lines, folder)
        tokenizer = AutoTokenizer.from_pretrained(folder)
        for line, got in zip(lines, answers):
            expected = theirs(tokenizer, source, line)
            if isinstance(got, str):
                reason = next((r for r in BY_RULE if r in got), "the chat template" if expected is None else None)
                counts["refused by both" if expected is None else f"refused here: {reason}"] += 1
                good = reason is not None
            else:
                good = expected is not None and (got["text"], got["ids"], got["trained"]) == expected
                counts["equal"] += good
            if not good:
                wrong += 1
                if wrong < 4:
                    print("  ", json.dumps(line)[:1500], "\n    expected", repr(expected)[:1500], "\n    got     ", repr(got)[:1500])
    print(f"{os.path.basename(os.path.dirname(template))}/{os.path.basename(template)}: {wrong} of {len(lines)} differ; {dict(counts)}", flush=True)
    return wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin"), parser.add_argument("folder"), parser.add_argument("--conversations", type=int, default=500), parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--templates", nargs="*")
    args = parser.parse_args()
    args.folder = os.path.abspath(args.folder)
    templates = args.templates or sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "templates", "*.jinja")))
    sys.exit(any([compare(args, os.path.abspath(path)) for path in templates]))
