"""Makes added-tokens/: a small SentencePiece model with control and user-defined pieces, and cases.json, the ids and the decoded text that
transformers' LlamaTokenizer gives for folders that tell of added tokens in every way: flags in tokenizer_config.json, added_tokens.json with
special_tokens_map.json, tokenizer.json's list, pieces of the model told again.

usage: python make_added_tokens.py TEXT tests/data        (transformers 5.23, sentencepiece 0.2; TEXT: examples/data/kjv.txt)
"""
import json
import os
import random
import sys
import tempfile

import sentencepiece
from transformers import LlamaTokenizer

out = os.path.join(sys.argv[2], "added-tokens")
os.makedirs(out, exist_ok=True)
model = os.path.join(out, "tokenizer.model")
sentencepiece.SentencePieceTrainer.train(
    input=sys.argv[1], model_prefix=model[:-len(".model")], vocab_size=420, model_type="bpe", byte_fallback=True, normalization_rule_name="identity",
    remove_extra_whitespaces=False, add_dummy_prefix=True, user_defined_symbols=["<|im_start|>", "<|im_end|>", "\u2581\u2581"], control_symbols=["<mask>"],
    character_coverage=0.999, num_threads=1, input_sentence_size=20000, shuffle_input_sentence=False)
os.remove(os.path.join(out, "tokenizer.vocab"))


def token(content, **flags):
    return {"content": content, "lstrip": False, "rstrip": False, "normalized": False, "single_word": False, "special": False} | flags


CLASS = {"tokenizer_class": "LlamaTokenizer"}
FLAGS = {"420": token("<left>", lstrip=True), "421": token("<right>", rstrip=True, special=True), "422": token("word", single_word=True),
         "423": token("<both>", lstrip=True, rstrip=True), "424": token("the Lord", normalized=True), "425": token("Lord God", special=True),
         "426": token("word<", normalized=True)}
FOLDERS = {
    "pieces of the model alone": {"tokenizer_config.json": CLASS},
    "no file beside the model": {},
    "flags": {"tokenizer_config.json": CLASS | {"added_tokens_decoder": FLAGS}},
    "flags, a space before every part": {"tokenizer_config.json": CLASS | {"added_tokens_decoder": FLAGS, "legacy": True}},
    "flags, no space before": {"tokenizer_config.json": CLASS | {"added_tokens_decoder": FLAGS, "add_prefix_space": False}},
    "a piece told again": {"tokenizer_config.json": CLASS | {"added_tokens_decoder": {
        "1": token("<s>", special=True), "2": token("</s>", rstrip=True, special=True), "420": token("<|end|>", rstrip=True, special=True)}}},
    "older files": {"tokenizer_config.json": CLASS, "added_tokens.json": {"<left>": 420, "<right>": 421, "word": 422},
                    "special_tokens_map.json": {"eos_token": "<right>", "mask_token": token("<mask>", lstrip=True), "additional_special_tokens": ["<left>"]}},
    "a named token": {"tokenizer_config.json": CLASS | {"added_tokens_decoder": {"420": token("<right>")}, "eos_token": "<right>"}},
}
BITS = ["<left>", "<right>", "word", "<both>", "the Lord", "Lord God", "<mask>", "<|im_start|>", "<|im_end|>", "<s>", "</s>", "<|end|>", " ", " ", "  ", "\n", "\t",
        "\u00a0", "\u3000", "a", "God", "the", "\u00e9", "\u4e2d", "_", "-", "7", "\u0301", "\u2581", "\u2581\u2581", "user", "swords", "sword", "words", "<", "\u00b2"]
rng = random.Random(3)
texts = [t + more for t in ("a<|im_end|> \n b", "see <mask> x", "a<right> \n b", "see <left> x", "word", "words word", "in word.", "\u00e9word word\u0301 -word-",
                            "<|im_start|>user\nHello<|im_end|>\n", "the Lord God", "  <left>", "<right>  ", "<both> <both>", "a  b") for more in ("", "<|end|>  c")]
texts += ["".join(rng.choice(BITS) for _ in range(rng.randint(1, 12))) for _ in range(60)]

def load(files, folder):
    os.symlink(os.path.abspath(model), os.path.join(folder, "tokenizer.model"))
    for file, content in files.items():
        with open(os.path.join(folder, file), "w") as target:
            json.dump(content, target)
    return LlamaTokenizer.from_pretrained(folder)


with tempfile.TemporaryDirectory() as folder:
    backend = load(FOLDERS["flags"], folder).backend_tokenizer
    FOLDERS["the list of tokenizer.json"] = {"tokenizer_config.json": CLASS, "tokenizer.json": json.loads(backend.to_str())}

cases = []
for name, files in FOLDERS.items():
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = load(files, folder)
        entries = []
        for text in texts:
            ids = tokenizer(text, add_special_tokens=False).input_ids
            entries.append([text, ids, tokenizer.decode(ids, skip_special_tokens=True)])
        cases.append({"name": name, "files": files, "bos": tokenizer.bos_token_id, "eos": tokenizer.eos_token_id, "texts": entries})
with open(os.path.join(out, "cases.json"), "w") as file:
    json.dump(cases, file, separators=(",", ":"))
