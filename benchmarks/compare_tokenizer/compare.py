"""Random Unicode texts (ids, offsets, decoded text) through zero_tokenize and Hugging Face's tokenizers, and the speed of both on one thread, in turns.

usage: python compare.py ZERO_TOKENIZE FOLDER... [--texts 100000] [--seed 1] [--speed FILE]        (tokenizers 0.23, transformers 5)
Each folder holds a tokenizer.json. Prints a line per folder, shows the first texts that differ, and exits 1 when there are any.
"""
import argparse, json, os, random, subprocess, sys, time, unicodedata
os.environ["TOKENIZERS_PARALLELISM"] = "false"
from transformers import AutoTokenizer

KNOWN = [c for c in map(chr, range(0x110000)) if unicodedata.category(c) not in ("Cn", "Cs")]
LOW = [c for c in KNOWN if ord(c) < 0x3100]
MARKS = [c for c in KNOWN if unicodedata.combining(c)]
TRICKY = [" ", "  ", "\n", "\r\n", "\t", "'", "s", "S", "T", "9", "12", "é", "e", "\u0301", "\u0323", "中", "🦙", "-", "\u00a0", "▁", "Ġ", "ſ", "K",
          "\u200d", "가", "ᄒ", "ᅡ", "ᆫ", "İ", "ß", "ﬁ", "½", "\ufeff", "\x00", "．"]


def text(rng, tokens):
    kind, length = rng.randrange(5), rng.randrange(1, 40)
    if kind == 3:
        out = "".join(rng.choice(LOW) + "".join(rng.choices(MARKS, k=rng.randrange(4))) for _ in range(length // 3 + 1))
    else:
        out = "".join(rng.choices((KNOWN, LOW, TRICKY, None, [chr(i) for i in range(32, 127)])[kind], k=length))
    if tokens and rng.random() < 0.2:
        place = rng.randrange(len(out) + 1)
        out = out[:place] + rng.choice(["", " "]) + rng.choice(tokens) + rng.choice(["", " \n"]) + out[place:]
    return out


def answers(program, folder, lines):
    run = subprocess.run([program, folder], input="".join(json.dumps(line) + "\n" for line in lines).encode(), capture_output=True, check=True)
    return [json.loads(line) for line in run.stdout.decode().split("\n")[:-1]]


def compare(program, folder, count, seed):
    tokenizer, rng, wrong = AutoTokenizer.from_pretrained(folder), random.Random(seed), 0
    tokens = [t.content for t in tokenizer.added_tokens_decoder.values()]
    texts = [text(rng, tokens) for _ in range(count)]
    expected = [tokenizer(t)["input_ids"] for t in texts]
    spans = [[list(span) for span in one.offsets] for one in tokenizer.backend_tokenizer.encode_batch(texts, add_special_tokens=False)]
    encoded = answers(program, folder, [{"text": t, "offsets": True} for t in texts])
    decoded = answers(program, folder, [{"ids": ids} for ids in expected])
    for t, ids, places, got, back in zip(texts, expected, spans, encoded, decoded):
        if got.get("ids") != ids or (got.get("offsets") or []) != places or back.get("text") != tokenizer.decode(ids):
            wrong += 1
            if wrong < 4:
                print("  ", ascii(t), "\n    expected", ids, places, "\n    got     ", got)
    print(f"{folder}: {wrong} of {count} texts differ", flush=True)
    return wrong


def speed(program, folder, path):
    """Whole paragraphs, so that both read many short texts; the program's time has its JSON in it."""
    tokenizer = AutoTokenizer.from_pretrained(folder).backend_tokenizer
    lines = open(path, encoding="utf-8").read().split("\n")
    texts = ["\n".join(lines[i:i + 200]) for i in range(0, len(lines), 200)]
    stream = "".join(json.dumps({"text": t}) + "\n" for t in texts).encode()
    for _ in range(3):
        begin = time.process_time()
        tokens = sum(len(tokenizer.encode(t).ids) for t in texts)
        theirs = time.process_time() - begin
        before = os.times()
        subprocess.run([program, folder], input=stream, stdout=subprocess.DEVNULL, check=True)
        after = os.times()
        ours = after.children_user + after.children_system - before.children_user - before.children_system
        print(f"{folder}: tokens a second of CPU time: {tokens / ours:.3g} here (with JSON and the start of the program), {tokens / theirs:.3g} there", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program"), parser.add_argument("folders", nargs="+")
    parser.add_argument("--texts", type=int, default=100000), parser.add_argument("--seed", type=int, default=1), parser.add_argument("--speed")
    args = parser.parse_args()
    if args.speed:
        for folder in args.folders:
            speed(args.program, folder, args.speed)
        sys.exit()
    sys.exit(any([compare(args.program, folder, args.texts, args.seed) for folder in args.folders]))
