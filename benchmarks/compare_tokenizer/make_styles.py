"""Folders with tokenizers of many styles, learnt from a text, for compare.py.

usage: python make_styles.py TEXT OUT_DIR        (tokenizers 0.23, transformers 5)
"""
import itertools, os, sys
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers as n, pre_tokenizers as p, processors, trainers
from transformers import PreTrainedTokenizerFast

BYTES = ["<0x%02X>" % i for i in range(256)]
MARKS = [AddedToken("<l>", lstrip=True), AddedToken("<r>", rstrip=True), AddedToken("<both>", lstrip=True, rstrip=True, special=True),
         AddedToken("word", single_word=True), AddedToken("The Lord", normalized=True), AddedToken("<img", normalized=False), AddedToken("<img>", special=True)]
SAMPLES = ["Crème brûlée, naïve façade; Ångström.", "Привет, мир! Как дела?", "我喜欢学习语言，今天天气很好。", "한국어 문장입니다.", "def f(x):\n\treturn x ** 2  # 12345\n", "ﬁne ½ ² Ⅷ ＡＢＣ"]


def bpe(**options):
    return models.BPE(**options), lambda first: trainers.BpeTrainer(vocab_size=1500, special_tokens=first, show_progress=False)


def byte_bpe(**options):
    return models.BPE(**options), lambda first: trainers.BpeTrainer(vocab_size=1500, special_tokens=first, show_progress=False,
                                                                   initial_alphabet=p.ByteLevel.alphabet())


def unigram(unk="<unk>"):
    return models.Unigram(), lambda first: trainers.UnigramTrainer(vocab_size=1500, special_tokens=first, unk_token=unk, show_progress=False)


def made(model, trainer, first, texts, **parts):
    tokenizer = Tokenizer(model)
    for name, part in parts.items():
        setattr(tokenizer, name, part)
    tokenizer.train_from_iterator(texts, trainer(first))
    return tokenizer


def with_bytes(tokenizer):
    """A unigram model that falls back to bytes."""
    import json
    content = json.loads(tokenizer.to_str())
    content["model"]["byte_fallback"] = True
    content["model"]["vocab"] += [[byte, -20.0] for byte in BYTES]
    return Tokenizer.from_str(json.dumps(content))


def styles(texts):
    sp = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    first = ["<pad>", "</s>", "<s>", "<unk>"]
    yield "llama2", made(*bpe(unk_token="<unk>", byte_fallback=True, fuse_unk=True), first + BYTES, texts, decoder=sp,
                         normalizer=n.Sequence([n.Prepend("▁"), n.Replace(" ", "▁")]))
    yield "gemma", made(*bpe(unk_token="<unk>", byte_fallback=True, fuse_unk=True), first + BYTES, texts, normalizer=n.Replace(" ", "▁"),
                        pre_tokenizer=p.Split(" ", "merged_with_previous"),
                        decoder=decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]))
    for scheme in ("always", "first", "never"):
        yield "metaspace-" + scheme, made(*bpe(unk_token="<unk>", fuse_unk=True), first, texts, pre_tokenizer=p.Metaspace("▁", scheme),
                                          decoder=decoders.Metaspace("▁", scheme))
    yield "metaspace-whole", made(*bpe(unk_token="<unk>", byte_fallback=True), first + BYTES, texts, pre_tokenizer=p.Metaspace("▁", "first", split=False),
                                  decoder=sp)
    yield "t5", made(*unigram(), first, texts, normalizer=n.Sequence([n.Nmt(), n.NFKC(), n.Replace(Regex(" {2,}"), " "), n.Strip()]),
                     pre_tokenizer=p.Sequence([p.WhitespaceSplit(), p.Metaspace()]), decoder=decoders.Metaspace(),
                     post_processor=processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]))
    yield "unigram-bytes", with_bytes(made(*unigram(), first, texts, normalizer=n.Replace(" ", "▁"), decoder=sp))
    yield "albert", made(*unigram(), first, texts, normalizer=n.Sequence([n.Replace("``", '"'), n.Replace("''", '"'), n.NFKD(), n.StripAccents(), n.Lowercase()]),
                         pre_tokenizer=p.Metaspace(), decoder=decoders.Metaspace(),
                         post_processor=processors.TemplateProcessing(single="<s>:0 <pad>:0 $A:0 </s>:0 <pad>:0", special_tokens=[("</s>", 1), ("<s>", 2), ("<pad>", 0)]))
    for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"):
        for pattern, name, invert in ((Regex(r"[aeiou\s]"), "regex", False), (" ", "space", False), (Regex(r"\w+|[^\w\s]+"), "words", True)):
            yield f"split-{behavior}-{name}", made(*bpe(unk_token="<unk>"), first, texts, pre_tokenizer=p.Split(pattern, behavior, invert),
                                                   decoder=decoders.BPEDecoder())
        yield f"punctuation-{behavior}", made(*bpe(unk_token="<unk>"), first, texts, decoder=decoders.Fuse(), normalizer=n.Lowercase(),
                                              pre_tokenizer=p.Sequence([p.Whitespace(), p.Punctuation(behavior)]))
    for single in (True, False):
        yield f"digits-{single}", made(*byte_bpe(), ["<s>"], texts, decoder=decoders.ByteLevel(), normalizer=n.NFC(),
                                       pre_tokenizer=p.Sequence([p.Digits(single), p.ByteLevel(add_prefix_space=not single)]),
                                       post_processor=processors.ByteLevel(trim_offsets=single))
    deepseek = [p.Split(Regex(r"\p{N}{1,3}"), "isolated"), p.Split(Regex("[一-龥぀-ゟ゠-ヿ]+"), "isolated"),
                p.Split(Regex("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"),
                        "isolated"), p.ByteLevel(add_prefix_space=False, use_regex=False)]
    yield "deepseek", made(*byte_bpe(), ["<s>", "</s>"], texts, pre_tokenizer=p.Sequence(deepseek), decoder=decoders.ByteLevel(), normalizer=n.Sequence([]),
                           post_processor=processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)]))
    yield "roberta", made(*byte_bpe(), ["<s>", "</s>"], texts, pre_tokenizer=p.ByteLevel(add_prefix_space=True), decoder=decoders.ByteLevel(),
                          post_processor=processors.RobertaProcessing(("</s>", 1), ("<s>", 0), trim_offsets=True, add_prefix_space=True))
    yield "byte-normalizer", made(*byte_bpe(), ["<s>"], texts, normalizer=n.Sequence([n.NFKC(), n.ByteLevel()]), decoder=decoders.ByteLevel(),
                                  pre_tokenizer=p.Split(Regex("Ġ?[^Ġ]+|Ġ+"), "isolated"),
                                  post_processor=processors.Sequence([processors.ByteLevel(trim_offsets=True), processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])]))
    yield "bert-bpe", made(*bpe(unk_token="<unk>", continuing_subword_prefix="##"), first, texts, normalizer=n.BertNormalizer(), pre_tokenizer=p.BertPreTokenizer(),
                           decoder=decoders.WordPiece(), post_processor=processors.BertProcessing(("</s>", 1), ("<s>", 2)))
    yield "suffix", made(*bpe(unk_token="<unk>", end_of_word_suffix="</w>"), first, texts, normalizer=n.Sequence([n.NFD(), n.Lowercase(), n.StripAccents(), n.Strip()]),
                         pre_tokenizer=p.Whitespace(), decoder=decoders.BPEDecoder("</w>"))
    yield "delimiter", made(*bpe(unk_token="<unk>", fuse_unk=True, ignore_merges=True), first, texts, pre_tokenizer=p.CharDelimiterSplit("e"))
    for more in (n.NFC(), n.NFD(), n.NFKC(), n.NFKD()):
        yield "form-" + type(more).__name__.lower(), made(*bpe(unk_token="<unk>", byte_fallback=True), first + BYTES, texts, normalizer=more, decoder=sp,
                                                           pre_tokenizer=p.WhitespaceSplit())


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = list(itertools.islice(file, 4000)) + SAMPLES * 20
    for name, tokenizer in styles(lines):
        tokenizer.add_tokens(MARKS)
        folder = os.path.join(sys.argv[2], name)
        PreTrainedTokenizerFast(tokenizer_object=tokenizer, clean_up_tokenization_spaces="metaspace" in name).save_pretrained(folder)
        print(folder, flush=True)
