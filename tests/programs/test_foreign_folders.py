"""Exports models and checkpoints that somebody else made: what they name beside themselves goes into no result, and devices, pipes
and endless manifests are refused. The same of a user's own run needs no options.

usage: test_foreign_folders.py BIN TESTS_DATA [-k NAME]        exits 1 when something is wrong
"""
import json
import os
import shutil

from checks import arguments, run_checks
from test_carried import PRESET, Place

SECRET = "the key of the house"
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"


def crc32c(crc, data):
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc


def checksum(data):
    """As base/hash.h has it, of bytes filled up with zeros."""
    data += bytes(-len(data) % 32)
    streams = [1, 2, 3, 4]
    for begin in range(0, len(data), 32):
        streams = [crc32c(crc, data[begin + 8 * i:begin + 8 * i + 8]) for i, crc in enumerate(streams)]
    mask = (1 << 64) - 1

    def scrambled(x):
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            x = (x ^ x >> 33) * factor & mask
        return x ^ x >> 33

    a, b, c, d = streams
    return scrambled((scrambled(a << 32 | b) + (c << 32 | d)) & mask)


def forge(place, checkpoint, edit):
    """A checkpoint that somebody made: `edit` changes the text of its manifest, whose checksum is made good."""
    shutil.copytree(place.path(checkpoint), place.path("forged"), dirs_exist_ok=True)
    text = place.read(checkpoint + "/manifest.json")
    changed = edit(text)
    assert changed != text
    begin = len('{"checksum":"')
    changed = changed[:begin] + "0" * 16 + changed[begin + 16:]
    place.write("forged/manifest.json", changed[:begin] + "%016x" % checksum((changed + "\n" + str(len(changed))).encode()) + changed[begin + 16:])



def check_checkpoint(place):
    place.write("t.jinja", TEMPLATE)
    place.write("secret", SECRET)
    place.train("out/run", PRESET | {"model.vocab_size": 32002}, template="t.jinja", tokenizer="adding/tokenizer.model")
    newest = "out/run/checkpoints/step-00000002"
    place.run("zero_export", newest, "own")
    place.same("own", "out/run/model")
    # named by a manifest that somebody wrote
    for was, is_ in (("t.jinja", place.path("secret")), ("t.jinja", "secret"), ("adding/tokenizer.model", place.path("secret"))):
        forge(place, newest, lambda text: text.replace(was, is_))
        place.refused("zero_export", "forged", "never", pieces=["forged", "secret", "--tokenizer"])
        place.refused("zero_generate", "forged", "--chat", pieces=["forged", "secret", "--tokenizer"])
    # the same path, and another content
    os.rename(place.path("secret"), place.path("t.jinja"))
    place.refused("zero_export", newest, "never", pieces=[newest, "t.jinja, whose content is not the one that it records", "--tokenizer"])
    place.write("t.jinja", TEMPLATE)
    # what the user names is taken
    config = place.json("adding/tokenizer_config.json")
    place.write("adding/tokenizer_config.json", json.dumps(config | {"model_max_length": 78}))
    place.refused("zero_export", newest, "never", pieces=["adding/tokenizer_config.json, whose content is not"])
    place.run("zero_export", newest, "named", "--tokenizer", "adding/tokenizer.model")
    assert place.json("named/tokenizer_config.json")["model_max_length"] == 78
    # of a checkpoint without records nothing is followed
    forge(place, newest, lambda text: text[:text.index(',"sources":')] + text[text.index("}", text.index(',"sources":')) + 1:])
    place.refused("zero_export", "forged", "never", pieces=["does not record its content", "--tokenizer"])


def check_base(place):
    place.train("out/first", PRESET | {"model.vocab_size": 32002}, template="chatml", tokenizer="adding/tokenizer.model")
    shutil.move(place.path("out/first/model"), place.path("base"))
    place.train("out/run", {"model.path": "base"})
    newest = "out/run/checkpoints/step-00000002"
    os.makedirs(place.path("app"))
    shutil.copy(place.path("base/config.json"), place.path("app"))
    config = place.json("app/config.json")
    place.write("app/config.json", json.dumps(config | {"password": SECRET}))
    forge(place, newest, lambda text: text.replace('path = \\"base\\"', 'path = \\"app\\"'))
    place.refused("zero_export", "forged", "never", pieces=["app/config.json", "--base"])
    shutil.move(place.path("base"), place.path("moved"))
    place.run("zero_export", newest, "again", "--base", "moved")
    place.same("again", "out/run/model")
    place.refused("zero_export", "moved", "never", "--base", "moved", pieces=["--base is for checkpoints"])


def check_adapter(place):
    """PiSSA's adapters are written as a difference from the base, whose weights must be the run's."""
    place.train("out/base", PRESET | {"model.vocab_size": 32000}, template="zephyr", tokenizer="alone/tokenizer.model")
    place.train("out/other", PRESET | {"model.vocab_size": 32000, "training.seed": 7}, template="zephyr", tokenizer="alone/tokenizer.model")
    place.train("out/run", {"model.path": "out/base/model", "lora.r": 2, "lora.init_lora_weights": "pissa"})
    newest = "out/run/checkpoints/step-00000002"
    place.run("zero_export", newest, "own")
    place.same("own", "out/run/adapter")
    forge(place, newest, lambda text: text.replace("out/base/model", "out/other/model"))
    place.refused("zero_export", "forged", "never", pieces=["other weights than those of", "out/other/model", "--base"])


def check_files(place):
    """Links, devices, pipes, manifests without an end."""
    place.write("secret", SECRET)
    place.train("out/run", PRESET | {"model.vocab_size": 32000}, template="zephyr", tokenizer="alone/tokenizer.model")
    for name in ("chat_template.jinja", "generation_config.json", "special_tokens_map.json", "model.safetensors"):
        shutil.copytree(place.path("out/run/model"), place.path("model"))
        os.remove(place.path("model", name))
        os.symlink("../secret", place.path("model", name))
        place.refused("zero_export", "model", "never", pieces=["model/" + name + ": is a link to", "secret"])
        shutil.rmtree(place.path("model"))
    os.makedirs(place.path("links"))
    for name in os.listdir(place.path("out/run/model")):
        os.symlink(place.path("out/run/model", name), place.path("links", name))
    place.run("zero_export", "links", "linked")
    place.same("linked", "out/run/model")
    shutil.copytree(place.path("out/run/checkpoints/step-00000002"), place.path("saved"))
    manifest = place.path("saved/manifest.json")

    def endless():
        with open(manifest, "w") as file:
            file.truncate((64 << 20) + 1)

    for make, piece in ((lambda: os.symlink("/dev/zero", manifest), "is no regular file"), (lambda: os.mkfifo(manifest), "is no regular file"),
                        (endless, "has more than 67108864 bytes")):
        os.remove(manifest)
        make()
        place.refused("zero_export", "saved", "never", pieces=["saved/manifest.json: " + piece])
        place.refused("zero_generate", "saved", "--prompt", "x", pieces=["saved/manifest.json: " + piece])


def main():
    args = arguments(__doc__)
    run_checks(args, globals(), lambda check, folder: check(Place(folder, args.bin, args.data)))


if __name__ == "__main__":
    main()
