"""Writes the table of models/text/pipeline/unicode/general_category.cpp: where runs of characters of one general category begin, as the regular
expressions of Hugging Face's tokenizers see them. A number is 32 times the first code point, plus the place of the category in NAMES.

usage: python make_general_category.py > table        (tokenizers 0.23)
"""
from tokenizers import Regex, pre_tokenizers

NAMES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co Cn".split()
codes = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
category = [NAMES.index("Cs")] * 0x110000
for place, name in enumerate(NAMES):
    between = "1" if name == "Ll" else "a"  # of another category, so that every match is a character of its own
    split = pre_tokenizers.Split(Regex(rf"\p{{{name}}}"), "isolated")
    for begin in range(0, len(codes), 20000):
        block = codes[begin:begin + 20000]
        text = between + between.join(map(chr, block)) + between
        for _, (first, last) in split.pre_tokenize_str(text):
            if last - first == 1 and first % 2 == 1:
                category[block[first // 2]] = place
starts = [code for code in range(0x110000) if code == 0 or category[code] != category[code - 1]]
line = "   "
for code in starts:
    item = f" {code * 32 + category[code]:#x},"
    if len(line) + len(item) > 120:
        print(line)
        line = "   "
    line += item
print(line)
