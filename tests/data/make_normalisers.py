"""Makes normalisers/: SentencePiece models that do more than merge. nfkc.model is what spm_train makes by default, a unigram model with the
nmt_nfkc normaliser; rules.model is small, its normaliser has three rules of its own.

usage: python make_normalisers.py TEXT tests/data        (sentencepiece 0.2; TEXT: examples/data/kjv.txt)
"""
import os
import sys
import tempfile

import sentencepiece

out = os.path.join(sys.argv[2], "normalisers")
os.makedirs(out, exist_ok=True)
common = {"input": sys.argv[1], "model_type": "unigram", "num_threads": 1, "input_sentence_size": 5000, "shuffle_input_sentence": False}
sentencepiece.SentencePieceTrainer.train(model_prefix=os.path.join(out, "nfkc"), vocab_size=300, **common)
with tempfile.NamedTemporaryFile("w", suffix=".tsv") as rules:
    rules.write("FB01\t66 69\n41 41\t61\n41 41 42\t62 63\n")
    rules.flush()
    sentencepiece.SentencePieceTrainer.train(model_prefix=os.path.join(out, "rules"), vocab_size=80, hard_vocab_limit=False, character_coverage=0.98,
                                             normalization_rule_tsv=rules.name, **common)
for name in ("nfkc", "rules"):
    os.remove(os.path.join(out, name + ".vocab"))
