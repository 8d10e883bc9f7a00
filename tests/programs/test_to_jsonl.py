"""scripts/to_jsonl: rows of CSV, Parquet and Arrow files as JSON lines, and input that it refuses.

usage: test_to_jsonl.py BIN TESTS_DATA [-k NAME]        exits 1 when something is wrong

Parquet and Arrow need pyarrow in the Python that runs this; without it these checks say so and do nothing.
"""
import json
import os
import subprocess
import sys

from checks import ModelPlace, arguments, environment, run_checks

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "to_jsonl")  # zero_to_jsonl of an installation
try:
    import pyarrow
    import pyarrow.parquet
except ImportError:
    pyarrow = None


class Place:
    def __init__(self, folder, bin, data):
        self.folder, self.bin, self.data = folder, bin, data

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content)
        return name

    def convert(self, *words, code=0):
        """(rows, what it said)"""
        done = subprocess.run([sys.executable, SCRIPT, *words], cwd=self.folder, capture_output=True, timeout=120)
        said = done.stderr.decode()
        assert done.returncode == code and "Traceback" not in said, (words, done.returncode, said)
        return [json.loads(line) for line in done.stdout.split(b"\n") if line], said

    def refuses(self, *words, pieces):
        _, said = self.convert(*words, code=2)
        assert all(piece in said for piece in pieces), (words, said)


def with_pyarrow(check):
    def run(place):
        if pyarrow is None:
            print("not run: this Python has no pyarrow")
        else:
            check(place)
    run.__name__ = check.__name__
    return run


def check_csv(place):
    place.write("a.csv", b'\xef\xbb\xbfq,a\r\n"x, ""y""","l1\r\nl2 \xc3\xa9"\r\n\r\n1,\r\n')
    assert place.convert("a.csv")[0] == [{"q": 'x, "y"', "a": "l1\r\nl2 é"}, {"q": "1", "a": ""}]
    assert place.convert("a.csv", "--rename", "q=prompt", "--rename", "a=completion", "--columns", "a,q")[0][1] == {"completion": "", "prompt": "1"}
    place.write("b.tsv", b"messages\tid\n\"[{\"\"role\"\": \"\"user\"\", \"\"content\"\": \"\"a\tb\"\"}]\"\t7")
    assert place.convert("b.tsv", "--drop", "id", code=2)[1].count("is not JSON") == 1, "a tab in a JSON text is written as \\t"
    place.write("b.tsv", rb'messages	id' + b"\n" + rb'"[{""role"": ""user"", ""content"": ""a\tb""}]"	7')
    assert place.convert("b.tsv", "--drop", "id")[0] == [{"messages": [{"role": "user", "content": "a\tb"}]}]
    place.write("d.csv", b'messages\n' + b'"[{""role"": ""user"", ""content"": ""a""}]"\n' * 3)
    assert place.convert("d.csv")[1].count("column messages") == 1, "each column is told once"
    place.write("c.csv", b"q;a\n1;2\n")
    assert "has one column, 'q;a'; --delimiter" in place.convert("c.csv")[1]
    assert place.convert("c.csv", "--delimiter", ";")[0] == [{"q": "1", "a": "2"}]
    assert place.convert("a.csv", "c.csv")[0][2] == {"q;a": "1;2"}, "files follow each other"


def check_csv_refusals(place):
    for name, content, words in (("few.csv", b'q,a\n1,"2\n3"\n4\n', "few.csv:4: has 1 cells, and the first line names 2 columns"),
                                 ("many.csv", b"q,a\n1,2,3\n", "many.csv:2: has 3 cells"),
                                 ("open.csv", b'q,a\n1,2\n3,"4\n5,6\n', "open.csv:3: is not CSV from here on: unexpected end of data"),
                                 ("quote.csv", b'q,a\n1,"2"3\n', "quote.csv:2: is not CSV from here on"),
                                 ("latin.csv", b"q,a\n1,2\n3,\xe9\n", "latin.csv:3: is not UTF-8 at byte 2 of the line"),
                                 ("twice.csv", b"q,q\n1,2\n", "has several columns 'q'"), ("unnamed.csv", b"q,\n1,2\n", "a column without a name"),
                                 ("header.csv", b"q,a\n", "no file holds a row"), ("far.csv", b'messages,a\n"[1e999]",2\n', "far.csv:2: column messages: is not JSON: 1e999"),
                                 ("deep.csv", b"messages,a\n" + b"[" * 100000 + b"]" * 100000 + b",2\n", "deep.csv:2: column messages: nests lists"), ("empty.csv", b"", "empty.csv: is empty"),
                                 ("notes.md", b"# Notes\n", "is neither Parquet nor Arrow")):
        place.refuses(place.write(name, content), pieces=[words])
    place.refuses("none.csv", pieces=["none.csv: No such file"])
    place.write("a.csv", b"q,a\n1,2\n")
    for words, piece in (("--columns z", "a.csv: has no column 'z'; it has q, a"), ("--rename q=a", "two columns the same name"), ("--rename q", "must be OLD=NEW"),
                         ("--delimiter ab", "one character"), ("--json a --to x.jsonl --columns a,none", "no column 'none'")):
        place.refuses("a.csv", *words.split(), pieces=[piece])
    assert "to_jsonl: nodir/rows.jsonl: No such file" in place.convert("a.csv", "--to", "nodir/rows.jsonl", code=1)[1]
    place.refuses("a.csv", "few.csv", "--to", "rows.jsonl", pieces=["few.csv:4"])
    assert not [name for name in os.listdir(place.folder) if name.startswith("rows.jsonl")], "half a file was left"
    place.write("rows.jsonl.part", b"mine")
    place.convert("a.csv", "--to", "rows.jsonl")
    assert place.convert("header.csv", "a.csv")[0] == [{"q": "1", "a": "2"}], "an empty shard is no reason to refuse the others"
    with open(place.path("rows.jsonl.part")) as file:
        assert file.read() == "mine"
    place.refuses("a.csv", "--to", "rows.jsonl", pieces=["rows.jsonl: exists; --overwrite replaces it"])
    place.convert("a.csv", "a.csv", "--to", "rows.jsonl", "--overwrite")
    with open(place.path("rows.jsonl")) as file:
        assert file.read() == '{"q": "1", "a": "2"}\n' * 2


def check_without_pyarrow(place):
    """A Python that cannot import it says how to get one."""
    place.write("pyarrow.py", b"raise ImportError\n")
    place.write("a.parquet", b"PAR1 and more")
    done = subprocess.run([sys.executable, SCRIPT, "a.parquet"], cwd=place.folder, capture_output=True, text=True, timeout=60, env=environment(PYTHONPATH=place.folder))
    assert done.returncode == 2 and "a.parquet: needs pyarrow" in done.stderr and "pip install pyarrow" in done.stderr, done


def message_kind():
    call = pyarrow.struct([("function", pyarrow.struct([("name", pyarrow.string()), ("arguments", pyarrow.string())]))])
    return pyarrow.struct([("role", pyarrow.string()), ("content", pyarrow.large_string()), ("tool_calls", pyarrow.list_(call))])


def conversation(number):
    return [{"role": "user", "content": f"Verse {number} \u2028 é"}, {"role": "assistant", "content": "God said", "tool_calls": None}]


@with_pyarrow
def check_nested_rows(place):
    """Parquet by row groups, Arrow files and streams: the same rows, in order, without the nulls that Arrow adds."""
    rows = 2500
    table = pyarrow.table({"messages": pyarrow.array([conversation(i) for i in range(rows)], pyarrow.list_(message_kind())), "id": range(rows)})
    pyarrow.parquet.write_table(table, place.path("a.parquet"), row_group_size=700, compression="zstd")
    with pyarrow.ipc.new_file(place.path("a.arrow"), table.schema) as writer:
        writer.write_table(table)
    with pyarrow.ipc.new_stream(place.path("odd.name"), table.schema) as writer:
        writer.write_table(table)
    expected = [{"messages": [{key: value for key, value in one.items() if value is not None} for one in conversation(i)], "id": i} for i in range(rows)]
    for name in ("a.parquet", "a.arrow", "odd.name"):
        found, said = place.convert(name)
        assert found == expected and f"{name}: 2500 rows" in said, (name, said)
    assert place.convert("a.parquet", "--keep-nulls")[0][0]["messages"][0]["tool_calls"] is None
    with open(place.path("a.parquet"), "rb") as file:
        place.write("cut.parquet", file.read()[:9000])
    place.refuses("cut.parquet", pieces=["cut.parquet: cannot be read; was the download cut short?"])


@with_pyarrow
def check_types_that_json_lacks(place):
    import datetime
    import decimal
    told = {"when": pyarrow.array([datetime.datetime(2024, 1, 2, 3, 4, 5)], pyarrow.timestamp("us", "UTC")), "price": pyarrow.array([decimal.Decimal("1.20")]),
            "day": pyarrow.array([datetime.date(2024, 1, 2)]), "map": pyarrow.array([[("a", 1)]], pyarrow.map_(pyarrow.string(), pyarrow.int8())),
            "word": pyarrow.array(["x"]).dictionary_encode(), "conversations": pyarrow.array([{"from": ["human", "gpt"], "value": ["a", "b"]}]),
            "messages": pyarrow.array(['[{"role": "user", "content": "a"}]']), "large": pyarrow.array([2**62])}
    pyarrow.parquet.write_table(pyarrow.table(told), place.path("a.parquet"))
    [row], said = place.convert("a.parquet")
    assert row == {"when": "2024-01-02T03:04:05+00:00", "price": "1.20", "day": "2024-01-02", "map": {"a": 1}, "word": "x", "large": 2**62,
                   "conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}], "messages": [{"role": "user", "content": "a"}]}, row
    for words in ("column when: timestamp", "column price: decimal", "column conversations: a struct of lists", "column messages: JSON text became a value"):
        assert words in said, (words, said)
    for name, values, words in (("image", pyarrow.array([b"\xff"]), "column image: holds bytes, perhaps images"), ("score", pyarrow.array([1.0, float("nan")]), "row 2: column score: nan is no number"),
                                ("time", pyarrow.array([1], pyarrow.duration("s")), "has the type duration[s]"),
                                ("when", pyarrow.array([0, 2**60], pyarrow.timestamp("us")), "rows 1 to 2: column when:"),
                                ("conversations", pyarrow.array([{"from": ["human"], "value": ["a", "b"]}]), "row 1: column conversations: its lists differ in length"),
                                ("messages", pyarrow.array(["[{'role': 'user'}]"]), "row 1: column messages: is not JSON")):
        pyarrow.parquet.write_table(pyarrow.table({name: values}), place.path("b.parquet"))
        place.refuses("b.parquet", pieces=[words])


@with_pyarrow
def check_trains(place):
    """From a Parquet file to a preview, by the command that zero_train names."""
    ModelPlace(place.path("run"), place.bin, place.data, {"job": {"output_dir": "out"}, "model": {"preset": "llama-tiny", "vocab_size": 32000},
               "data": {"train": ["a.parquet"], "tokenizer": os.path.join(place.data, "tinyllama-chat")}, "training": {"steps": 1, "seq_len": 64}})
    table = pyarrow.table({"messages": pyarrow.array([conversation(i) for i in range(3)], pyarrow.list_(message_kind()))})
    pyarrow.parquet.write_table(table, place.path("run", "a.parquet"))
    run = lambda *words: subprocess.run([place.bin + "/zero_train", "config.toml", *words], cwd=place.path("run"), capture_output=True, text=True, timeout=60, env=environment())
    said = run().stderr
    command = said[said.index("scripts/to_jsonl"):].split("\n")[0].split()
    subprocess.run([sys.executable, SCRIPT, *command[1:]], cwd=place.path("run"), check=True, timeout=60)
    shown = run("--set", "data.train=" + command[-1], "--preview", "3", "--json")
    assert shown.returncode == 0 and [json.loads(line)["text"].count("God said") for line in shown.stdout.split("\n") if line] == [1, 1, 1], shown


if __name__ == "__main__":
    args = arguments(__doc__)
    run_checks(args, globals(), lambda check, folder: check(Place(folder, args.bin, args.data)))
