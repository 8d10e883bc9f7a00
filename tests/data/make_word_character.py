"""Writes the table of models/text/word_character.cpp: the characters that Hugging Face's tokenizers take for a part of a word (the class \\w of
its regular expressions) when they look beside a token that must be a single word. It is asked about every character.

usage: python make_word_character.py > table        (tokenizers 0.23)
"""
from tokenizers import AddedToken, Tokenizer, models

tokenizer = Tokenizer(models.BPE(vocab={"<unk>": 0}, merges=[], unk_token="<unk>"))
tokenizer.add_tokens([AddedToken("@@", single_word=True, normalized=False)])
ranges = []
for code in range(0x110000):
    if 0xD800 <= code < 0xE000 or tokenizer.encode("@@" + chr(code)).ids[0] == 1:  # behind it: "@@@" begins with the token
        continue
    if ranges and ranges[-1][1] == code - 1:
        ranges[-1][1] = code
    else:
        ranges.append([code, code])
line = "   "
for first, last in ranges:
    item = f" {{{first:#x}, {last:#x}}},"
    if len(line) + len(item) > 158:
        print(line)
        line = "   "
    line += item
print(line)
