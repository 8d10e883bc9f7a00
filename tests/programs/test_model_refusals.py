"""Runs zero_train with bad models and adapters of every kind (refusals.py).

usage: test_model_refusals.py ZERO_TRAIN TESTS_DATA [-k NAME] [-v]        exits 1 when a case fails
"""
import json
import os
import shutil
import struct

from refusals import files_in, keys, main, remove, text


def truncated_data(place):
    header, data = place.weights()
    place.write_weights(header, data[:-4])


def header_longer_than_file(place):
    header, data = place.weights()
    place.write_weights(header, data, size=1 << 60)


def header_is_no_json(place):
    with open(place.path("model/model.safetensors"), "r+b") as file:
        file.seek(8)
        file.write(b"[[[[")


def overlapping_tensors(place):
    header, data = place.weights()
    names = sorted(n for n in header if n.endswith("input_layernorm.weight"))
    header[names[0]]["data_offsets"] = header[names[1]]["data_offsets"]
    place.write_weights(header, data)


def offsets_beyond_file(place):
    header, data = place.weights()
    entry = header["model.norm.weight"]
    entry["data_offsets"] = [o + (1 << 40) for o in entry["data_offsets"]]
    place.write_weights(header, data)


def missing_weight(place):
    header, data = place.weights()
    header["model.norm.wieght"] = header.pop("model.norm.weight")
    place.write_weights(header, data)


def other_shape(place):
    header, data = place.weights()
    header["lm_head.weight"]["shape"].reverse()
    place.write_weights(header, data)


def small_vocabulary(place):
    shutil.copy(os.path.join(place.data, "tinyllama-chat", "tokenizer.model"), place.path("tokenizer.model"))
    with open(place.path("rows.jsonl"), "w") as file:
        file.write('{"text": "a"}\n')
    text('[job]\noutput_dir = "out"\n[model]\npreset = "llama-tiny"\n[data]\ntrain = "rows.jsonl"\ntokenizer = "tokenizer.model"\n'
         "[training]\nsteps = 1\nseq_len = 8\n")(place)


def model_below(name):
    def act(place):
        shutil.copytree(place.path("model"), place.path(name))
    return act


def adapter_at(name):
    def act(place):
        os.makedirs(place.path(name))
        with open(place.path(name + "/adapter_config.json"), "w") as file:
            file.write("{}")
    return act


def adapter_of(case, change=lambda place: None):
    """The adapter of a golden case, with a tokenizer that no small model has room for."""
    def act(place):
        shutil.copytree(os.path.join(place.data, case, "adapter"), place.path("adapter"))
        shutil.copy(os.path.join(place.data, "tinyllama-chat", "tokenizer.model"), place.path("adapter/tokenizer.model"))
        change(place)
    return act


def other_layer(place):
    with open(place.path("adapter/adapter_model.safetensors"), "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        header, data = file.read(size).replace(b"layers.1.", b"layers.9."), file.read()
    with open(place.path("adapter/adapter_model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", size) + header + data)


def gguf_at(*names):
    def act(place):
        for size, name in enumerate(names, 20):
            os.makedirs(os.path.dirname(place.path(name)), exist_ok=True)
            with open(place.path(name), "wb") as file:
                file.write(b"GGUF" + bytes(size))
    return act


def gguf_of_type(number):
    def act(place):
        with open(place.path("a.gguf"), "wb") as file:
            file.write(b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q1sIQIQ", 1, b"a", 1, 32, number, 0) + bytes(256))
    return act


def model_field(name, value):
    def spoil(place):
        with open(place.path("model/config.json")) as file:
            config = {**json.load(file), name: value}
        with open(place.path("model/config.json"), "w") as file:
            json.dump(config, file)
    return spoil


def other_head(place):
    """A head beside the embedding that config.json ties it to, which differs in its last element."""
    model_field("tie_word_embeddings", True)(place)
    header, data = place.weights()
    begin, end = header["model.embed_tokens.weight"]["data_offsets"]
    first, last = header["lm_head.weight"]["data_offsets"]
    place.write_weights(header, data[:first] + data[begin:end - 4] + struct.pack("<f", 9.0) + data[last:])


CASES = [
    ("name_of_the_hub", None, ["model.path=TinyLlama/TinyLlama-1.1B"], ["does not exist", "zero_fetch TinyLlama/TinyLlama-1.1B --to"]),
    ("vocabulary_too_small", small_vocabulary, [], ["32000 ids", "set vocab_size = 32000 in [model]"]),
    ("model_is_a_file", None, ["model.path=tokens.bin"], ["--set model.path=tokens.bin: is not a directory"]),
    ("model_that_a_shell_expands", None, ["model.path=$HOME/m"], ["$HOME/m: ~ and variables are not expanded"]),
    ("model_is_a_run", model_below("run/model"), ["model.path=run"], ["--set model.path=run: is the folder of a run: name its model, run/model"]),
    ("model_is_an_adapter", adapter_at("adapter"), ["model.path=adapter"], ["model.path=adapter", "is an adapter", '[lora] adapter = "adapter"']),
    ("model_is_a_run_of_an_adapter", adapter_at("run/adapter"), ["model.path=run"], ["model.path=run", '[lora] adapter = "run/adapter"']),
    ("adapter_is_a_run_with_a_broken_one", adapter_at("run/adapter"), ["lora.adapter=run"], ['run/adapter/adapter_config.json: "peft_type" must be "LORA"']),
    ("rank_that_the_adapter_has_not", adapter_of("tiny-lora"), ["lora.adapter=adapter", "lora.r=16"],
     ["--set lora.r=16: the adapter has r = 4 (adapter/adapter_config.json): remove the key, or name another adapter"]),
    ("modules_that_the_adapter_has_not", adapter_of("tiny-lora"), ["lora.adapter=adapter", 'lora.target_modules=["q_proj"]'],
     ["--set lora.target_modules=", "the adapter has target_modules = [", "adapter/adapter_config.json"]),
    ("adapter_of_another_model", adapter_of("tiny-lora", other_layer), ["lora.adapter=adapter"], ["adapter: ", "layers.1.", "the adapter belongs to another base model"]),
    ("configuration_of_a_model", None, ["model.path=model/config.json"], ["--set model.path=model/config.json: is the config.json of a model, which serves --dry-run alone", "name the model's directory", '[model] preset = "model/config.json"']),
    ("experts", model_field("num_experts", 8), [], ["model/config.json: num_experts = 8: a mixture of experts, which is not trained here; take a model without experts"]),
    ("model_is_a_broken_gguf_file", gguf_at("a.gguf"), ["model.path=a.gguf"], ["a.gguf", "version 0; versions 2 and 3 are read"]),
    ("gguf_of_another_type", gguf_of_type(19), ["model.path=a.gguf"], ['a.gguf: tensor "a" is in IQ1_S; the types that are read are F32, F16, ', "zero_export MODEL OUT.gguf --gguf Q8_0"]),
    ("model_is_a_folder_with_gguf_and_its_adapter", gguf_at("gguf/a-lora.gguf", "gguf/m.gguf"), ["model.path=gguf"], ["name the file, gguf/m.gguf"]),
    ("model_is_a_folder_with_gguf", gguf_at("gguf/a.gguf"), ["model.path=gguf"], ["model.path=gguf", "GGUF", "name the file, gguf/a.gguf"]),
    ("unknown_preset", text('[job]\noutput_dir = "out"\n[model]\npreset = "llama-9b"\n[data]\ntrain = "tokens.bin"\n'
                            "[training]\nsteps = 1\nseq_len = 8\n"), [], ["llama-9b", "llama-15m", "the path of a config.json"]),
    ("sequence_beyond_context", None, ["training.seq_len=129"], ["seq_len", "128"]),
    ("adapters_for_nothing", keys('[lora]\ntarget_modules = ["query"]\n'), [], ["config.toml:15", "query", "q_proj"]),
    ("all_linear_and_more", keys('[lora]\ntarget_modules = ["all-linear", "q_proj"]\n'), [], ["config.toml:15", "alone"]),
    ("saves_an_unknown_module", keys('[lora]\nmodules_to_save = ["classifier"]\n'), [], ["config.toml:15", "classifier", "lm_head"]),
    ("adapter_is_a_model", keys('[lora]\nadapter = "model"\n'), [], ["config.toml:15", "holds a model, no adapter", "adapter_config.json"]),
    ("adapter_is_a_run_of_a_model", model_below("run/model"), ["lora.adapter=run"], ["--set lora.adapter=run: holds a model, no adapter"]),
    ("adapter_is_a_folder", files_in("d"), ["lora.adapter=d"], ["--set lora.adapter=d: has no adapter_config.json"]),
    ("scales_of_eight_bits", keys("[lora]\nquantization = \"int8\"\ndouble_quantization = true\n"), [], ["config.toml:16", 'quantization = "nf4"']),
    ("scales_of_nothing", keys("[lora]\ndouble_quantization = true\n"), [], ["config.toml:15", 'quantization = "nf4"']),
    ("frozen_without_adapters", None, ["zero.frozen=keep"], ["zero.frozen=keep", "[lora]"]),
    ("no_model", remove("model"), [], ["model", "does not exist"]),
    ("no_model_config", remove("model/config.json"), [], ["config.json"]),
    ("dropout_of_everything", model_field("attention_dropout", 1.0), [], ["model/config.json: attention_dropout = 1 must be at least 0 and below 1"]),
    ("dropout_of_the_run", None, ["model.residual_dropout=1.0"], ["--set model.residual_dropout=1.0: must be at least 0 and below 1"]),
    ("dropout_beside_a_preset", text('[job]\noutput_dir = "out"\n[model]\npreset = "llama-tiny"\nattention_dropout = -0.5\n[data]\ntrain = "tokens.bin"\n'
                                     "[training]\nsteps = 1\nseq_len = 8\n"), [], ["config.toml:5: [model] attention_dropout = -0.5: must be at least 0 and below 1"]),
    ("family_that_is_not_known", model_field("model_type", "mamba"), ["training.seq_len=129"],
     ['model/config.json: model_type "mamba" is not supported', '"smollm3"', "take a model of one of them, or add the family (docs/extending/model.md)"]),
    ("head_beside_a_tied_embedding", other_head, [], ["lm_head.weight differs from model.embed_tokens.weight", "tie_word_embeddings"]),
    ("no_weights", remove("model/model.safetensors"), [], ["safetensors"]),
    ("truncated_weights", truncated_data, [], ["model.safetensors", "it was cut short: copy or download it again"]),
    ("header_longer_than_file", header_longer_than_file, [], ["model.safetensors"]),
    ("header_is_no_json", header_is_no_json, [], ["model.safetensors"]),
    ("overlapping_tensors", overlapping_tensors, [], ["model.safetensors"]),
    ("offsets_beyond_file", offsets_beyond_file, [], ["model.safetensors"]),
    ("missing_weight", missing_weight, [], ["model.norm.weight"]),
    ("other_shape", other_shape, [], ["lm_head.weight", "64", "512"]),
]

if __name__ == "__main__":
    main(__doc__, CASES)
