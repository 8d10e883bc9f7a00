"""Runs zero_train with bad configurations and bad data of every kind (refusals.py).

usage: test_refusals.py ZERO_TRAIN TESTS_DATA [-k NAME] [-v]        exits 1 when a case fails
"""
import os
import shutil
import struct

from refusals import CONFIG, files_in, keys, main, remove, text


def token_beyond_vocabulary(place):
    with open(place.path("tokens.bin"), "r+b") as file:
        file.seek(2 * 100)
        file.write(struct.pack("<H", 60000))


def odd_bytes(place):
    with open(place.path("tokens.bin"), "ab") as file:
        file.write(b"x")


def no_window(place):
    with open(place.path("tokens.bin"), "r+b") as file:
        file.truncate(2 * 10)


def held_output(place):
    os.mkdir(place.path("out"))
    with open(place.path("out/metrics.jsonl"), "w") as file:
        file.write('{"version":1,"step":1}\n')


def trains_on(name, content, tokenizer="added-tokens/tokenizer.model", keep=bytes):
    """Data of the given bytes, with a tokenizer of tests/data that `keep` may change."""
    def act(place):
        os.mkdir(place.path("tokenizer"))
        with open(os.path.join(place.data, tokenizer), "rb") as source, open(place.path("tokenizer/tokenizer.model"), "wb") as target:
            target.write(keep(source.read()))
        with open(place.path("tokenizer/tokenizer_config.json"), "w") as file:
            file.write('{"tokenizer_class": "LlamaTokenizer"}')
        with open(place.path(name), "wb") as file:
            file.write(content)
        place.config(CONFIG | {"data": {"train": [name], "tokenizer": "tokenizer/tokenizer.model", "chat_template": "zephyr"}, "model": {"path": "model"}})
    return act


def answer(keys):
    return ('{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", ' + keys + "}]}\n").encode()


def fill_character_map(model):
    """The normaliser's table leads everywhere: behind its name, a tag, the map's length (3 bytes) and the table's (4)."""
    begin = model.rindex(b"nmt_nfkc\x12") + len(b"nmt_nfkc\x12") + 3 + 4
    return model[:begin] + b"\xff" * 200000 + model[begin + 200000:]


def tokenizer_json_alone(place):
    with open(place.path("model/tokenizer.json"), "w") as file:
        file.write("{}")
    with open(place.path("a.txt"), "w") as file:
        file.write("God said")


def larger_tokenizer(of_model=None):
    """Text for a tokenizer of 32000 ids; another of tests/data may lie in the model's folder."""
    def act(place):
        trains_on("a.txt", b"God said " * 999, "tinyllama-chat/tokenizer.model")(place)
        if of_model:
            shutil.copy(os.path.join(place.data, of_model), place.path("model/tokenizer.model"))
    return act


VALIDATED = ("data.validation=tokens.bin", "training.validation_interval=1")


def samples(content, name="p.txt"):
    """Prompts, and a tokenizer for a model with room for its ids."""
    def act(place):
        os.mkdir(place.path("tokenizer"))
        shutil.copy(os.path.join(place.data, "tinyllama-chat/tokenizer.model"), place.path("tokenizer"))
        place.config(CONFIG | {"data": {"train": ["tokens.bin"], "tokenizer": "tokenizer"}, "model": {"preset": "llama-tiny", "vocab_size": 32000}})
        with open(place.path(name), "w") as file:
            file.write(content)
    return act


def prompt_file(place):
    with open(place.path("p.txt"), "w") as file:
        file.write("God said\n")


CASES = [
    ("no_config", remove("config.toml"), [], ["config.toml"]),
    ("broken_toml", text("[job\n"), [], ["config.toml:1", "TOML"]),
    ("unknown_section", keys("[optimiser]\nlr = 1.0\n"), [], ["config.toml:", "[optimizer]"]),
    ("misspelt_key", keys("sedd = 3\n"), [], ["config.toml:14", "sedd", "`seed`"]),
    ("unknown_key", None, ["zero.bucket_bytes=5"], ["--set zero.bucket_bytes=5", "unknown key"]),
    ("key_without_a_section", None, ["train_micro_batch_size_per_gpu=3"], ["--set train_micro_batch_size_per_gpu=3: ", "(DeepSpeed) is `local_batch_size` in [training]"]),
    ("key_of_another_tool", None, ["training.learning_rate=1e-3"], ["learning_rate", "`lr` in [optimizer]"]),
    ("section_of_another_tool", keys("[zero_optimization]\nstage = 3\n"), [], ["config.toml:14", "zero_optimization", "`stage` in [zero]"]),
    ("configuration_of_deepspeed", text('{"train_batch_size": 8, "zero_optimization": {"stage": 2}}\n'), [], ["config.toml:1", "DeepSpeed", "`global_batch_size` in [training]"]),
    ("configuration_in_yaml", text("output_dir: out\nbatch_size: 2\n"), [], ["config.toml:1", "YAML", "`local_batch_size` in [training]"]),
    ("configuration_is_a_folder", lambda place: (os.remove(place.path("config.toml")), os.mkdir(place.path("config.toml"))), [], ["config.toml", "is a directory"]),
    ("validation_that_never_comes", None, ["data.validation=tokens.bin"], ["--set data.validation=tokens.bin", "validation_interval"]),
    ("tokenizer_too_large", larger_tokenizer("added-tokens/tokenizer.model"), [], ["[data] tokenizer = ", "32000 ids", "leave the key out"]),
    ("tokenizer_too_large_alone", larger_tokenizer(), [], ["[data] tokenizer = ", "32000 ids", "name the tokenizer that the model was made with", ".bin"]),
    ("tokenizer_too_large_of_the_model", larger_tokenizer("tinyllama-chat/tokenizer.model"), ["data.tokenizer=model/tokenizer.model"],
     ["data.tokenizer=model/tokenizer.model", "name the tokenizer that the model was made with"]),
    ("output_in_the_kernel", None, ["job.output_dir=/proc/x"], ["--set job.output_dir=/proc/x", "holds no files"]),
    ("output_of_a_long_name", None, ["job.output_dir=" + 300 * "a"], ["300 characters"]),
    ("tokenizer_of_a_long_name", None, ["data.tokenizer=" + 300 * "a"], ["data.tokenizer", "cannot be looked at: File name too long"]),
    ("training_file_is_a_folder", lambda place: os.mkdir(place.path("a.txt")), ["data.train=a.txt"], ["a.txt", "is not a file"]),
    ("place_that_a_shell_expands", None, ["job.output_dir=~/out"], ["--set job.output_dir=~/out", "~ and variables are not expanded"]),
    ("folder_of_training_files", files_in("d[1]", "b.txt", "a.txt", "c.jsonl", "d.md"), ['data.train="d[1]"'],
     ['--set data.train="d[1]": ', 'folders are not expanded; list the files: ["d[1]/a.txt", "d[1]/b.txt"]']),
    ("folder_without_training_files", files_in("d", "d.md"), ["data.train=d"], ["--set data.train=d: is not a file, and folders are not expanded; list the files that end in .txt, "]),
    ("pattern_without_an_ending", files_in("d", "b.txt", "a.txt"), ['data.train="d/*"'], ['patterns are not expanded; list the files: ["d/a.txt", "d/b.txt"]']),
    ("pattern_of_training_files", None, ['data.train="*.bin"'], ['--set data.train="*.bin": does not exist, and patterns are not expanded; list the files: ["tokens.bin"]']),
    ("dump_into_nowhere", None, ["metrics.dump_first_step=none/a.safetensors"], ["none is no directory"]),
    ("trace_backwards", None, ["metrics.trace_steps=[12, 10]"], ["--set metrics.trace_steps=[12, 10]", "the first of them not after the second"]),
    ("trace_of_half_a_step", None, ["metrics.trace_steps=[1, 2.5]"], ["--set metrics.trace_steps=[1, 2.5]", "two steps, from 1"]),
    ("samples_without_validation", prompt_file, ["metrics.samples=p.txt"], ["--set metrics.samples=p.txt", "needs [data] validation or validation_fraction, and [training] validation_interval"]),
    ("samples_from_nowhere", None, [*VALIDATED, "metrics.samples=p.txt"], ["--set metrics.samples=p.txt", "does not exist"]),
    ("samples_without_a_tokenizer", prompt_file, [*VALIDATED, "metrics.samples=p.txt"], ["--set metrics.samples=p.txt: needs a tokenizer", "data.tokenizer"]),
    ("samples_of_a_pipeline", prompt_file, [*VALIDATED, "metrics.samples=p.txt", "parallel.pipeline=2"], ["--set metrics.samples=p.txt", "pipeline = 2", "zero_generate"]),
    ("samples_of_divided_rows", prompt_file, [*VALIDATED, "metrics.samples=p.txt", "parallel.context=2"], ["--set metrics.samples=p.txt", "context = 2", "zero_generate"]),
    ("samples_without_a_prompt", samples(""), [*VALIDATED, "metrics.samples=p.txt"], ["--set metrics.samples=p.txt", "holds no prompt"]),
    ("samples_with_a_blank_line", samples("a\n\nb\n"), [*VALIDATED, "metrics.samples=p.txt"], ["--set metrics.samples=p.txt", "p.txt:2: is blank"]),
    ("sample_beyond_the_context", samples(3000 * "God "), [*VALIDATED, "metrics.samples=p.txt"], ["--set metrics.samples=p.txt", "p.txt:1", "context of", "shorten it"]),
    ("samples_without_a_template", samples("{}", "p.jsonl"), [*VALIDATED, "metrics.samples=p.jsonl"], ["--set metrics.samples=p.jsonl", "chat template"]),
    ("nul_in_a_path", None, ['data.train=["a\\u0000.bin"]'], ["NUL"]),
    ("wrong_type", None, ["training.seed=ten"], ["--set training.seed=ten", "must be an integer"]),
    ("impossible_value", None, ["optimizer.lr=-1"], ["lr", "between 0 and 1e30"]),
    ("optimizer_as_a_key", None, ["optimizer=adamw"], ["--set optimizer=adamw: ", "--set optimizer.name=adamw"]),
    ("state_type_of_none", None, ["optimizer.name=adafactor", "optimizer.state_dtype=bf16"], ["--set optimizer.state_dtype=bf16: ", '"adafactor" keeps no', '"fp32"']),
    ("master_of_itself", None, ["training.precision=fp32", "optimizer.master_dtype=split"], ["--set optimizer.master_dtype=split: ", "the weights are the masters", "leave it out"]),
    ("groups_as_a_key", keys('[[optimizer.groups]]\nmatch = "*"\n'), [], ["config.toml:14", "`group`"]),
    ("group_without_a_tensor", keys('[[optimizer.group]]\nmatch = "*.none"\n'), [], ["config.toml:14: [[optimizer.group]]", "*.none", "no trained tensor", '"model.layers.']),
    ("group_of_a_model_with_adapters", keys('[lora]\n[[optimizer.group]]\nmatch = "*.mlp.*"\n'), [], ["config.toml:15: [[optimizer.group]]", '"base_model.model.model.layers.']),
    ("group_behind_another", keys('[[optimizer.group]]\nmatch = "*"\n[[optimizer.group]]\nmatch = "*norm*"\nlr = 0.1\n'), [],
     ["config.toml:16: [[optimizer.group]]: treats no tensor", "config.toml:14, group 1"]),
    ("muon_group_of_vectors", keys('[[optimizer.group]]\nmatch = "*norm*"\noptimizer = "muon"\n'), [], ["config.toml:14: [[optimizer.group]]", "matrix in a block", '"adamw"']),
    ("no_stage", None, ["zero.stage=4"], ["zero.stage=4", "0, 1, 2 or 3"]),
    ("steps_and_epochs", None, ["training.epochs=2", "training.steps=2"], ["--set training.epochs=2: contradicts steps (--set training.steps=2)", "give one of the two"]),
    ("steps_and_epochs_in_the_file", keys("epochs = 2.0\n"), [], ["config.toml:", "epochs", "contradicts steps", "give one of the two"]),
    ("preset_and_path", None, ["model.preset=llama-tiny", "model.path=model"], ["--set model.path=model: contradicts preset (--set model.preset=llama-tiny)"]),
    ("no_training_files", None, ["data.train=[]"], ["--set data.train=[]: must not be empty"]),
    ("batch_not_divided", None, ["training.global_batch_size=8"], ["global_batch_size", "3 x 2 = 6; legal here: --set training.local_batch_size=2, or --set training.global_batch_size=6"]),
    ("shard_degree", None, ["zero.shard_degree=3"], ["shard_degree", "divide"]),
    ("no_training_file", remove("tokens.bin"), [], ["tokens.bin", "does not exist"]),
    ("no_tokenizer", None, ["data.train=a.txt"], ["a.txt"]),
    ("tokenizer_json_alone", tokenizer_json_alone, ["data.train=a.txt"], ["tokenizer.json", '"model" is missing']),
    ("text_in_latin1", trains_on("a.txt", ("God said\n für alle" * 99).encode("latin1")), [], ["a.txt: byte 11 (0xFC) is not UTF-8", "iconv"]),
    ("text_in_utf16", trains_on("a.txt", ("God said" * 99).encode("utf-16-le")), [], ["a.txt: byte 1 is zero", "UTF-16"]),
    ("unknown_template", trains_on("a.jsonl", answer('"content": "b"')), ["data.chat_template=zephir"], ["--set data.chat_template=zephir: ", "the nearest is zephyr; known are "]),
    ("no_template", trains_on("a.jsonl", answer('"content": "b"')), ["data.chat_template="], ["--set data.chat_template=: ", "has no chat template"]),
    ("template_that_is_no_file", trains_on("a.jsonl", answer('"content": "b"')), ["data.chat_template=none.jinja"], ["--set data.chat_template=none.jinja: ", "no file with one"]),
    ("template_beside_its_tokenizer", trains_on("a.jsonl", answer('"content": "b"')), ["data.chat_template=llama-3"], ["--set data.chat_template=llama-3: ", "<|eot_id|>"]),
    ("broken_tokenizer", trains_on("a.txt", b"God said " * 999, keep=lambda model: model[:1000]), [], ["config.toml:", '[data] tokenizer = "tokenizer/tokenizer.model": tokenizer/tokenizer.model: ']),
    ("hostile_tokenizer", trains_on("a.txt", b"God said " * 999, "normalisers/nfkc.model", fill_character_map), [],
     ["tokenizer.model: the normaliser's character map", "damaged"]),
    ("tool_calls", trains_on("a.jsonl", answer('"content": "b", "tool_calls": [{"id": "x"}]')), [], ["a.jsonl:1: message 2: \"tool_calls\" would be lost: the chat template"]),
    ("half_a_weight", trains_on("a.jsonl", b"\n" + answer('"content": "b", "weight": 0.5')), [], ["a.jsonl:2: message 2: \"weight\" must be 0 or 1"]),
    ("untrained_but_all", trains_on("a.jsonl", answer('"content": "b", "weight": 0')), ["data.train_on=all"], ["a.jsonl:1: message 2", "data.train_on"]),
    ("torn_line", trains_on("a.jsonl", b'{"text": "a"}\n{"text": "b\n'), [], ["a.jsonl:2: not valid JSON: parse error at byte ", "; mend the example, or take it out"]),
    ("broken_row_of_a_list", trains_on("a.json", b'[{"instruction": "a", "output": "b"},\n {"instruction": "c"}]'), [], ["a.json: row 2: no known kind"]),
    ("no_list", trains_on("a.json", b'"text"\n'), [], ["a.json: does not begin with [; a .json file is one list of examples, [{...}, {...}], or has one example a line"]),
    ("torn_line_of_a_json_file", trains_on("a.json", b'{"text": "a"}\n{"text": "b\n'), [], ["a.json:2: not valid JSON: parse error at byte "]),
    ("object_over_several_lines", trains_on("a.json", b'{\n "text": "a"\n}\n'), [], ["a.json:1: not valid JSON: ", "; an example is one line, or an object of one list, [{...}, {...}], in a .json file"]),
    ("unknown_kind_of_file", None, ["data.train=a.csv"],
     ["--set data.train=a.csv: must end in .txt, .jsonl, ", "; convert it: scripts/to_jsonl a.csv --to a.jsonl"]),
    ("table_of_columns", None, ["data.train=d/a.parquet"], ["; convert it: scripts/to_jsonl d/a.parquet --to a.jsonl"]),
    ("table_of_an_odd_name", None, ["data.train=my data/it's.arrow"], ["scripts/to_jsonl 'my data/it'\\''s.arrow' --to 'it'\\''s.jsonl'"]),
    ("table_under_a_false_name", trains_on("a.jsonl", b"PAR1" + b"\x15\x04" * 99 + b"PAR1"), [],
     ['a.jsonl"', "is a Parquet file, whatever its name says; convert it: scripts/to_jsonl a.jsonl --to converted-a.jsonl"]),
    ("validation_under_a_false_name", lambda place: open(place.path("v.txt"), "wb").write(b"ARROW1\0\0 and more"), ["data.validation=v.txt", "training.validation_interval=1"],
     ["--set data.validation=v.txt: is an Arrow file, whatever its name says; convert it: "]),
    ("packed_file", None, ["data.train=a.jsonl.gz"], ["; unpack it: gzip -dc a.jsonl.gz > a.jsonl"]),
    ("packed_under_a_false_name", trains_on("a.jsonl", b"\x28\xb5\x2f\xfd" + b"\0" * 99), [], ["is packed by zstd, whatever its name says; unpack it: zstd -dc a.jsonl > unpacked-a.jsonl"]),
    ("folder_of_tables", files_in("d", "b.parquet", "README.md"), ["data.train=d"],
     ["list the files that end in .txt, .jsonl, .json or .bin; d/b.parquet is none: convert it: scripts/to_jsonl d/b.parquet --to b.jsonl"]),
    ("data_set_of_the_hub", None, ["data.train=tatsu-lab/alpaca"], ["fetch it first: zero_fetch tatsu-lab/alpaca --dataset --to alpaca"]),
    ("examples_and_a_stream", trains_on("a.jsonl", b'{"text": "a"}\n'), ['data.train=["a.jsonl", "tokens.bin"]'],
     ['"tokens.bin"]: tokens.bin is a stream of tokens (.txt, .bin), and a.jsonl holds examples (.jsonl, .json): name files of one kind']),
    ("preferences_of_a_stream", None, ["preference.method=orpo"], ["tokens.bin", " is a stream of tokens, and [preference] trains on answers, in .jsonl or .json files"]),
    ("weights_of_fewer_files", None, ["data.weights=[0.7, 0.3]"], ["--set data.weights=[0.7, 0.3]: has 2 numbers for 1 file of data.train: name one for each"]),
    ("weights_of_more_files", None, ['data.train=["tokens.bin", "tokens.bin"]', "data.weights=1"], ["--set data.weights=1: has 1 number for 2 files"]),
    ("weight_below_zero", None, ["data.weights=[-1]"], ["--set data.weights=[-1]: must be a list of numbers above 0"]),
    ("weight_of_nothing", None, ['data.train=["tokens.bin", "tokens.bin"]', "data.weights=[0, 0]"], ["must be a list of numbers above 0"]),
    ("weight_that_is_no_number", None, ["data.weights=[nan]"], ["--set data.weights=[nan]: must be finite"]),
    ("weight_of_words", None, ['data.weights=["much"]'], ["data.weights", "must be a list of numbers"]),
    ("weight_below_a_millionth", None, ['data.train=["tokens.bin", "tokens.bin"]', "data.weights=[1, 1e-7]"],
     ["--set data.weights=[1, 1e-7]: gives tokens.bin less than a millionth of the rows: leave the file out, or raise 1e-07"]),
    ("weights_of_another_tool", None, ["data.interleave_probs=[0.7, 0.3]"], ["`interleave_probs` (LLaMA-Factory) is `weights` in [data]"]),
    ("weighted_file_without_a_row", lambda place: open(place.path("short.bin"), "wb").write(b"\1\0" * 10), ['data.train=["tokens.bin", "short.bin"]', "data.weights=[9, 1]"],
     ["short.bin has 10 tokens, too few for one row"]),
    ("misspelt_file", None, ["data.train=token.bin"], ["--set data.train=token.bin: does not exist", "; the nearest name there is tokens.bin"]),
    ("misspelt_file_among_others", None, ['data.train=["tokens.bin", "token.bin"]'], ['"token.bin"]: token.bin does not exist', "; the nearest name there is tokens.bin"]),
    ("empty_validation_file", lambda place: open(place.path("v.bin"), "w").close(), ["data.validation=v.bin", "training.validation_interval=1"],
     ["--set data.validation=v.bin: is empty: take it out, or name a file with data"]),
    ("blank_file", trains_on("a.jsonl", b"\n \n"), [], ["a.jsonl: holds no example: take it out, or name a file with examples"]),
    ("role_of_another_name", trains_on("a.jsonl", b'{"messages": [{"role": "human", "content": "a"}]}\n'), [],
     ['a.jsonl:1: unknown role "human": roles are system, user, assistant, tool; rename it, perhaps to "user"']),
    ("questions_and_answers", trains_on("a.jsonl", b'{"question": "a", "answer": "b", "id": 1}\n'), [],
     ['a.jsonl:1: no known kind of example: it has "answer", "id", "question"; it must have messages, ', 'rename "question" to prompt and "answer" to completion']),
    ("preferences", trains_on("a.jsonl", b'{"prompt": "a", "chosen": "b", "rejected": "c"}\n'), [],
     ["a.jsonl:1: ", "make a pair of preferences, on which zero_train trains with [preference]", "keep the chosen answers"]),
    ("precision_of_another_tool", None, ["training.precision=float16"], ['"bf16" or "fp16"; float16 is called "fp16" here']),
    ("precision_of_8_bits", None, ["training.precision=fp8"], ['"bf16" or "fp16"; 8-bit floats are not there']),
    ("key_without_a_counterpart", None, ["metrics.report_to=wandb"], ["`report_to` (Hugging Face) is not there: metrics.jsonl in the output directory", "zero_report"]),
    ("comma_in_toml", text('[job]\noutput_dir = "out",\n'), [], ["config.toml:2: not valid TOML: ", "; a line is `key = value`, with texts in"]),
    ("no_tokenizer_beside_the_model", trains_on("a.txt", b"God said " * 99), ["data.tokenizer="],
     ["--set data.tokenizer=: texts need a tokenizer, and model holds no tokenizer.json, tokenizer.model or spiece.model", "name a tokenizer.json"]),
    ("no_room_on_the_disk", None, ["job.output_dir=disk/out", "checkpoint.interval=1", "checkpoint.keep=100000000"],
     ["--set job.output_dir=disk/out: its disk has room for ", ", and the run will write ", "free some, name another output_dir, or lower checkpoint.keep"]),
    ("token_beyond_vocabulary", token_beyond_vocabulary, [], ["tokens.bin", "60000", "512"]),
    ("half_a_token", odd_bytes, [], ["tokens.bin"]),
    ("data_shorter_than_a_window", no_window, [], ["tokens.bin"]),
    ("output_holds_a_run", held_output, [], ["out", "--overwrite"]),
    ("several_mistakes", held_output, ["data.train=none.bin", "zero.shard_degree=3"], ["shard_degree", "--set data.train=none.bin: does not exist", "--overwrite"]),
    ("output_cannot_be_made", None, ["job.output_dir=tokens.bin/out"], ["tokens.bin/out", "tokens.bin is not a directory"]),
]

if __name__ == "__main__":
    main(__doc__, CASES, on_two_ranks=("batch_not_divided",))
