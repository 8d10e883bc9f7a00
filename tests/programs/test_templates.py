"""Trains and chats by chat templates that lose a part of a conversation, that end no answer, or that take contents as texts or in
parts: a loss is refused with its line, an answer without an end is warned of, and both forms of a content give one text.

usage: test_templates.py BIN TESTS_DATA [-k NAME]        exits 1 when something is wrong
"""
import json

from checks import arguments, run_checks
from test_carried import CHAT, PRESET, Place

MODEL = PRESET | {"model.vocab_size": 32000}
TOKENIZER = "alone/tokenizer.model"
SYSTEM, USER, ANSWER = ({"role": role, "content": content} for role, content in (("system", "Answer in French."), ("user", "Two and two?"), ("assistant", "Quatre.")))
THINKS = ANSWER | {"content": "<think>\n2 + 2 is 4.\n</think>\n\nQuatre."}
PROMPT = "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"


def loop(body):
    return "{% for m in messages %}{% set c = m['content'] %}" + body + "{% endfor %}" + PROMPT


WRITES = loop("<|{{ m['role'] }}|>\n{{ c }}{{ eos_token }}\n")
NO_SYSTEM = loop("{% if m['role'] != 'system' %}<|{{ m['role'] }}|>\n{{ c }}{{ eos_token }}\n{% endif %}")
CUTS_THOUGHTS = loop("<|{{ m['role'] }}|>\n{{ c.split('</think>')[-1] }}{{ eos_token }}\n")
PARTS_ALONE = loop("<|{{ m['role'] }}|>\n{% for part in c %}{% if part['type'] == 'text' %}{{ part['text'] }}{% endif %}{% endfor %}{{ eos_token }}\n")
LAST_QUESTION = ("{% if messages[0]['role'] == 'system' %}{% set first = messages[0]['content'] %}{% set rest = messages[1:] %}{% else %}{% set rest = messages %}{% endif %}{% for m in rest %}{% if m['role'] == 'user' %}"
                 "[INST] {% if loop.last and first is defined %}{{ first }}\n\n{% endif %}{{ m['content'] }} [/INST]{% else %}{% generation %} {{ m['content'] }}{{ eos_token }}{% endgeneration %}{% endif %}{% endfor %}")


def preview(place, template, messages, code=0, **more):
    """The first example as zero_train shows it, or what it says."""
    place.write("t.jinja", template)
    place.write("talk.jsonl", json.dumps({"messages": messages}) + "\n")
    out = place.train("out", MODEL | more, "--preview", "1", "--json", template="t.jinja", tokenizer=TOKENIZER, code=code)
    return next(json.loads(line) for line in out.splitlines() if line.startswith("{")) if code == 0 else out


def check_losses(place):
    in_vain = {"data.train_on": "all"}
    for template, messages, more, piece in (
            (NO_SYSTEM, [SYSTEM, USER, ANSWER], {}, "message 1: what the system says, from \"Answer in French.\" on, would be lost"),
            (NO_SYSTEM, [USER, ANSWER, SYSTEM, USER, ANSWER], in_vain, "message 3: what the system says"),
            (CUTS_THOUGHTS, [USER, THINKS], {}, "message 2: what the assistant says, from \"2 + 2 is 4."),
            (PARTS_ALONE, [USER, ANSWER], {}, "message 1: what the user says, from \"Two and two?\" on, would be lost"),
            (LAST_QUESTION, [SYSTEM, USER, ANSWER], {}, "message 1: what the system says"),
            (LAST_QUESTION, [SYSTEM, USER, ANSWER], in_vain, "message 1: what the system says")):
        said = preview(place, template, messages, code=2, **more)
        assert said.count("error: ") == 1 and "talk.jsonl:1: " + piece in said, (template, said)
    for template, messages in ((WRITES, [SYSTEM, USER, THINKS]), (NO_SYSTEM, [USER, ANSWER]), (LAST_QUESTION, [USER, ANSWER])):
        assert messages[-1]["content"] in preview(place, template, messages)["text"]


def check_chat(place):
    place.write("talk.jsonl", json.dumps({"messages": [SYSTEM, USER, ANSWER]}) + "\n")
    place.train("out", MODEL, template="zephyr", tokenizer=TOKENIZER)
    place.write("no_system", NO_SYSTEM)
    place.write("last_question", LAST_QUESTION)
    chat = ("zero_generate", "out", "--chat", *CHAT, "--system", "Answer in French.")
    said = place.refused(*chat, "--chat-template", "no_system", pieces=["--chat: message 1: what the system says, from \"Answer in French.\" on, would be lost"])
    assert "read in" not in said, said
    place.run(*chat, "--chat-template", "last_question", text="Two and two?\n")
    place.run(*chat[:-2], "--chat-template", "no_system", text="Two and two?\n")


def check_ends(place):
    place.write("talk.jsonl", "".join(json.dumps({"messages": [USER, ANSWER] * turns}) + "\n" for turns in (1, 2)))
    plain = "{% for m in messages %}{% if m['role'] == 'user' %}Question: {{ m['content'] }}\n{% else %}Answer: {% generation %}{{ m['content'] }}{% endgeneration %}\n{% endif %}{% endfor %}{% if add_generation_prompt %}Answer: {% endif %}"
    for name, template, unended in (("plain", plain.replace("{% generation %}", "").replace("{% endgeneration %}", ""), 2), ("block", plain.replace("{% endgeneration %}", "{% endgeneration %}{{ eos_token }}"), 2),
                                    ("ended", plain.replace("{% endgeneration %}", "{{ eos_token }}{% endgeneration %}"), 0)):
        place.write("t.jinja", template)
        for again in ("", "-again"):  # the second one reads the cache of the first one's tokens
            said = place.train("out-" + name, MODEL, "--overwrite", template="t.jinja", tokenizer=TOKENIZER)
            assert said.count("warning: ") == bool(unended) and said.count(f"In {unended} of 2 examples the last trained answer ends with no special token") == bool(unended), (name, again, said)


def check_parts(place):
    def in_parts(message):
        return message | {"content": [{"type": "text", "text": message["content"]}]}

    picky = "{% if messages[0]['role'] != 'system' or messages | length < 3 %}{{ raise_exception('too short') }}{% endif %}"
    both = loop("<|{{ m['role'] }}|>\n{% if c is string %}{{ c }}{% else %}{% for part in c %}{{ part['text'] }}{% endfor %}{% endif %}{{ eos_token }}\n")
    texts = [SYSTEM, USER, ANSWER]
    expected = preview(place, WRITES, texts)["text"]
    for template in (WRITES, both, picky + both, PARTS_ALONE):
        assert preview(place, template, [in_parts(message) for message in texts], **{"data.train_on": "all"})["text"] == expected, template
    assert preview(place, picky + WRITES, [SYSTEM, in_parts(USER), in_parts(ANSWER)], **{"data.train_on": "all"})["text"] == expected


def check_nulls(place):
    """A joined table has a null in each key of a part that others have; templates of images ask for the key alone."""
    images = loop("<|{{ m['role'] }}|>\n{% if c is string %}{{ c }}{% else %}{% for p in c %}{% if 'image_url' in p %}<image>{% elif 'text' in p %}{{ p['text'] }}{% endif %}{% endfor %}{% endif %}{{ eos_token }}\n")
    part = {"type": "text", "text": USER["content"], "image_url": None}
    assert preview(place, images, [USER | {"content": [part]}, ANSWER])["text"] == preview(place, WRITES, [USER, ANSWER])["text"]


def check_keys(place):
    place.write("t.jinja", loop("<|{{ m['role'] }}|>\n{{ m.name if m['role'] == 'tool' }}{{ c }}{{ eos_token }}\n"))
    place.write("talk.jsonl", json.dumps({"messages": [USER | {"name": "Ann"}, ANSWER]}) + "\n")
    said = place.train("out", MODEL, template="t.jinja", tokenizer=TOKENIZER)
    assert "talk.jsonl: keys that are not read: messages[].name" in said, said


def check_replaced_template(place):
    """A template of the configuration that writes otherwise than the model's own is warned of; one that writes alike is not."""
    place.write("talk.jsonl", json.dumps({"messages": [USER, ANSWER]}) + "\n")
    place.train("base", MODEL, template="zephyr", tokenizer=TOKENIZER)
    place.write("alike.jinja", WRITES)
    place.write("other.jinja", WRITES.replace("<|{{ m['role'] }}|>", "<{{ m['role'] }}>").replace("<|assistant|>", "<assistant>"))
    for template, warned in (("", False), ("zephyr", False), ("alike.jinja", False), ("other.jinja", True)):
        said = place.train("out", {"model.path": "base/model"}, "--overwrite", template=template)
        warning = f'"{template}" replaces the chat template of base/model, which writes conversations otherwise; leave the key out'
        assert (warning in said) == warned and ("replaces the chat template" in said) == warned, (template, said)


def main():
    args = arguments(__doc__)
    run_checks(args, globals(), lambda check, folder: check(Place(folder, args.bin, args.data)))


if __name__ == "__main__":
    main()
