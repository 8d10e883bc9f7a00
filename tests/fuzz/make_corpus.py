"""Writes the first inputs of tests/fuzz/corpus: the smallest files of each kind that get far, from tests/data where it has
them. Inputs that once were findings lie beside them under names of their own, and stay.

usage: python3 tests/fuzz/make_corpus.py
"""
import base64
import json
import os
import struct

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA, CORPUS = os.path.join(ROOT, "tests/data"), os.path.join(ROOT, "tests/fuzz/corpus")


def data(path):
    with open(os.path.join(DATA, path), "rb") as file:
        return file.read()


def write(target, name, content):
    """`content`: bytes, or the files of a bundle by name."""
    if isinstance(content, dict):
        parts = (b"=== " + part.encode() + b"\n" + text for part, text in content.items())
        content = b"\n".join(parts)
    os.makedirs(os.path.join(CORPUS, target), exist_ok=True)
    with open(os.path.join(CORPUS, target, name), "wb") as file:
        file.write(content)


def dumped(value):
    return json.dumps(value).encode()


def safetensors(tensors, metadata=None):
    """`tensors`: shape by name, in F32; or (type, bytes of an element, shape)."""
    header, end = {"__metadata__": metadata or {"format": "pt"}}, 0
    for name, shape in tensors.items():
        kind, size, shape = shape if isinstance(shape, tuple) else ("F32", 4, shape)
        count = size
        for n in shape:
            count *= n
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [end, end + count]}
        end += count
    text = dumped(header)
    return struct.pack("<Q", len(text)) + text + bytes(i % 60 for i in range(end))


LLAMA = {"model_type": "llama", "vocab_size": 8, "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1,
         "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 32, "rms_norm_eps": 1e-5,
         "rope_theta": 10000.0, "tie_word_embeddings": False, "hidden_act": "silu", "bos_token_id": 1, "eos_token_id": 2}
BLOCK = "model.layers.0."
LLAMA_TENSORS = {
    "model.embed_tokens.weight": [8, 8], BLOCK + "input_layernorm.weight": [8], BLOCK + "self_attn.q_proj.weight": [8, 8],
    BLOCK + "self_attn.k_proj.weight": [4, 8], BLOCK + "self_attn.v_proj.weight": [4, 8], BLOCK + "self_attn.o_proj.weight": [8, 8],
    BLOCK + "post_attention_layernorm.weight": [8], BLOCK + "mlp.gate_proj.weight": [12, 8], BLOCK + "mlp.up_proj.weight": [12, 8],
    BLOCK + "mlp.down_proj.weight": [8, 12], "model.norm.weight": [8], "lm_head.weight": [8, 8]}


def write_safetensors():
    write("safetensors", "types", safetensors({
        "a": [2, 3], "b": ("BF16", 2, [4]), "c": ("F16", 2, []), "d": ("I64", 8, [1]), "e": ("U8", 1, [0, 7]), "f": ("BOOL", 1, [2]),
        "g": ("F64", 8, [1, 1]), "h": ("F8_E4M3", 1, [3]), "i": ("I32", 4, [2])}))
    write("safetensors", "empty", struct.pack("<Q", 2) + b"{}")


def write_hf_directory():
    names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    tensors = list(LLAMA_TENSORS.items())
    parts = [dict(tensors[:6]), dict(tensors[6:])]
    index = {"metadata": {"total_size": 1}, "weight_map": {name: names[i] for i in (0, 1) for name in parts[i]}}
    bundle = {"config.json": dumped(LLAMA), "model.safetensors.index.json": dumped(index),
              names[0]: safetensors(parts[0]), names[1]: safetensors(parts[1]),
              "generation_config.json": b'{"eos_token_id": [2, 3], "temperature": 0.5}'}
    write("hf_directory", "llama", bundle)
    del parts[1]["lm_head.weight"], index["weight_map"]["lm_head.weight"]
    write("hf_directory", "tied", dict(bundle, **{
        "config.json": dumped(dict(LLAMA, tie_word_embeddings=True)), "model.safetensors.index.json": dumped(index),
        names[1]: safetensors({name: ("BF16", 2, shape) for name, shape in parts[1].items()})}))


def write_model_config():
    for family in sorted(os.listdir(os.path.join(DATA, "families"))):
        write("model_config", family, data(f"families/{family}/model/config.json"))
    write("model_config", "llama", data("tiny/model/config.json"))
    write("model_config", "tinyllama", data("tinyllama-chat/config.json"))


def write_hub_listing():
    git, sha = "0" * 40, "1" * 64
    write("hub_listing", "model", dumped([{"type": "directory", "oid": git, "size": 0, "path": "folder"}] +
                                         [{"type": "file", "oid": git, "size": 3, "path": path} for path in ("config.json", "folder/a b.json", "tokenizer.json")] +
                                         [{"type": "file", "oid": git, "size": 134, "path": "model.safetensors", "lfs": {"oid": sha, "size": 5000000000, "pointerSize": 134}}]))


def write_configuration():
    for name in ("pretrain", "lora"):
        with open(os.path.join(ROOT, "examples", name + ".toml"), "rb") as file:
            write("configuration", name, file.read())
    write("configuration", "resolved", data("checkpoint-1/out/config.toml"))
    write("configuration", "groups", b"""
[job]
output_dir = "o"
[model]
preset = "llama-tiny"
[data]
train = ["a.jsonl"]
tokenizer = "t/tokenizer.json"
[training]
epochs = 1.5
seq_len = 32
[optimizer]
name = "muon"
lr = 0.02
lr_adamw = 3e-4
[[optimizer.group]]
match = ["*.v_proj.weight"]
optimizer = "lion"
lr = 1e-3
[zero]
stage = 3
[offload]
optimizer = "nvme"
nvme_dir = "/tmp"
---
checkpoint.interval=3""")


def write_checkpoint():
    states = bytes(i % 250 for i in range(4096)) + bytes(4096)
    manifest = {
        "checksum": "0" * 16, "version": 2,
        "position": {"steps": 3, "tokens": 96, "trained_tokens": 96, "seconds": 0.5, "updates": 3,
                     "loss_scale": {"scale": 1024.0, "clean_steps": 5, "skipped_steps": 1}},
        "chunk_elements": 64,
        "files": [{"name": "rank-00000.states", "bytes": 8192, "checksum": "0" * 15 + "1", "sections": [[0, 0, 64]]}],
        "groups": [{"numel": 64, "states": [{"name": "master", "type": "float32", "grain": 1}, {"name": "absmax", "type": "float32", "grain": 32},
                                            {"name": "codes", "type": "uint8", "grain": 1}],
                    "tensors": [{"name": "w", "shape": [4, 8], "offset": 0}, {"name": "b", "shape": [3], "offset": 32}], "optimizer": "adamw8bit"}],
        "run": {"ranks": 1, "stage": 3, "settings": {"optimizer.name": '"adamw8bit"'}, "directory": "/d", "configuration": "[job]\n",
                "model_config": "{}"}}

    def dense(value):
        return json.dumps(value, separators=(",", ":")).encode() + b"\n"

    write("checkpoint", "blocks", {"manifest.json": dense(manifest), "rank-00000.states": states})
    two = json.loads(json.dumps(manifest))
    two["chunk_elements"] = 32
    two["files"][0].update(bytes=12288)
    two["run"]["escaped_directory"] = "/%FF"
    del two["run"]["directory"], two["position"]["loss_scale"]
    write("checkpoint", "chunks", {"manifest.json": dense(two), "rank-00000.states": bytes(12288)})
    first = "checkpoint-1/out/checkpoints/step-00000003/"
    write("checkpoint", "version1", {"manifest.json": data(first + "manifest.json"), **{f"rank-0000{i}.states": data(first + f"rank-0000{i}.states") for i in (0, 1)}})


def write_examples():
    call = {"role": "assistant", "content": None, "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}}]}
    tool = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}}}
    talk = [{"role": "system", "content": "s"}, {"role": "user", "content": "the h\u00e9"}, {"role": "assistant", "content": "us", "weight": 1}]
    lines = [
        {"messages": talk}, {"messages": talk[1:] + [{"role": "user", "content": [{"type": "text", "text": "?"}]}, call,
                                                     {"role": "tool", "content": "2", "tool_call_id": "1"},
                                                     {"role": "assistant", "content": "b", "reasoning_content": "c"}], "tools": [tool]},
        {"conversations": [{"from": "system", "value": "s"}, {"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}], "id": 4},
        {"instruction": "a", "input": "b", "output": "c", "history": [["d", "e"]], "system": "s"},
        {"prompt": "a", "completion": " b"}, {"text": "the us\n"},
        {"prompt": [{"role": "user", "content": "a"}], "completion": [{"role": "assistant", "content": "b"}]},
        {"messages": talk, "chat_template_kwargs": {"enable_thinking": False}}]
    write("examples", "lines", b"\n".join(map(dumped, lines)) + b"\n")
    write("examples", "list", b"\xef\xbb\xbf" + b"[" + b",\n".join(map(dumped, lines[:4])) + b"]\n")


def fields(message):
    """Of a protobuf message: (number, content)."""
    def varint(at):
        value = shift = 0
        while True:
            value |= (message[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if message[at - 1] < 0x80:
                return value, at
    at = 0
    while at < len(message):
        tag, at = varint(at)
        size = {0: varint(at)[1] - at, 1: 8, 5: 4}.get(tag & 7)
        if size is None:
            size, at = varint(at)
        yield tag >> 3, message[at:at + size]
        at += size


def character_map(model):
    """precompiled_charsmap of a tokenizer.model's normalizer_spec."""
    return dict(fields(dict(fields(model))[3]))[2]


def write_tokenizer_json():
    for name in ("gpt2", "llama3", "mistral", "qwen"):
        tokenizer = json.loads(data(f"pipelines/{name}/tokenizer.json"))
        model = tokenizer["model"]
        special = {token["content"] for token in tokenizer["added_tokens"]}
        kept = [token for token in sorted(model["vocab"], key=model["vocab"].get) if len(token) == 1 and ord(token) < 0x180 or token in special or token.startswith("<0x")]
        merges = []
        for merge in model.get("merges", []):
            pair = merge.split(" ") if isinstance(merge, str) else merge
            if len(merges) < 12 and pair[0] in kept and pair[1] in kept:
                merges.append(merge)
                if "".join(pair) not in kept:
                    kept.append("".join(pair))
        model["vocab"] = {token: i for i, token in enumerate(kept)}
        if "merges" in model:
            model["merges"] = merges
        for token in tokenizer["added_tokens"]:
            token["id"] = model["vocab"].setdefault(token["content"], len(model["vocab"]))
        for part in (tokenizer["post_processor"] or {}).get("processors", [tokenizer["post_processor"] or {}]):
            for token in part.get("special_tokens", {}).values():
                token["ids"] = [model["vocab"].get(t, 0) for t in token["tokens"]]
        write("tokenizer_json", name, {"tokenizer.json": json.dumps(tokenizer, ensure_ascii=False).encode(),
                                       "tokenizer_config.json": data(f"pipelines/{name}/tokenizer_config.json")})
    unigram = {"version": "1.0", "added_tokens": [{"id": 0, "content": "<unk>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}],
               "normalizer": {"type": "Sequence", "normalizers": [
                   {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(character_map(data("normalisers/rules.model"))).decode()}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "\u2581"}]},
               "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
               "post_processor": None, "decoder": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
               "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["\u2581", -1.0], ["a", -1.5], ["b", -2.5], ["ab", -0.5], ["\u2581a", -1.2]], "byte_fallback": False}}
    write("tokenizer_json", "unigram", {"tokenizer.json": json.dumps(unigram, ensure_ascii=False).encode(), "tokenizer_config.json": b'{"tokenizer_class": "PreTrainedTokenizerFast"}',
                                        "special_tokens_map.json": b'{"unk_token": "<unk>"}', "added_tokens.json": b'{"<x>": 6}'})


def write_sentencepiece():
    write("sentencepiece", "rules", {"tokenizer.model": data("normalisers/rules.model"), "tokenizer_config.json": b'{"add_bos_token": true, "legacy": false}'})
    write("sentencepiece", "added", {"tokenizer.model": data("added-tokens/tokenizer.model"), "tokenizer_config.json": b"{}", "added_tokens.json": b"{}"})


def write_chat_template():
    for name in ("brackets", "headers", "thoughts", "turns"):
        case = next(case for case in json.loads(data(f"chat/{name}/cases.json"))["cases"] if case.get("text") and "tools" in case or name != "turns")
        request = {key: case[key] for key in ("messages", "tools", "variables") if key in case}
        write("chat_template", name, {"chat_template.jinja": data(f"chat/{name}/template.jinja"), "request.json": dumped(request)})
    jinja = json.loads(data("jinja/cases.json"))
    sound = [text for text, rendered in jinja["cases"] if rendered is not None]
    request = {"messages": jinja["variables"].pop("messages"), "variables": jinja["variables"], "add_generation_prompt": True}
    for i in range(0, len(sound), 40):
        write("chat_template", f"cases{i // 40}", {"chat_template.jinja": "\n".join(sound[i:i + 40]).encode(), "request.json": dumped(request)})


def gguf(version, metadata, tensors, size):
    """As FuzzTarget gguf makes it of JSON; here for a raw file."""
    def text(value):
        return struct.pack("<Q", len(value.encode())) + value.encode()
    file = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    for key, value in metadata.items():
        file += text(key)
        if isinstance(value, str):
            file += struct.pack("<I", 8) + text(value)
        elif isinstance(value, float):
            file += struct.pack("<If", 6, value)
        elif isinstance(value, int):
            file += struct.pack("<II", 4, value)
        elif isinstance(value[0], str):
            file += struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text, value))
        elif isinstance(value[0], float):
            file += struct.pack("<IIQ", 9, 6, len(value)) + struct.pack(f"<{len(value)}f", *value)
        else:
            file += struct.pack("<IIQ", 9, 5, len(value)) + struct.pack(f"<{len(value)}i", *value)
    for tensor in tensors:
        file += text(tensor["name"]) + struct.pack(f"<I{len(tensor['shape'])}QIQ", len(tensor["shape"]), *tensor["shape"], tensor["type"], tensor["offset"])
    return file + bytes(-len(file) % 32) + b"\1" * size


def write_gguf():
    keys = {"general.architecture": "llama", "general.name": "a", "llama.context_length": 32, "llama.embedding_length": 32, "llama.block_count": 1,
            "llama.feed_forward_length": 32, "llama.attention.head_count": 2, "llama.attention.head_count_kv": 1, "llama.attention.key_length": 16,
            "llama.attention.value_length": 16, "llama.attention.layer_norm_rms_epsilon": 1e-5, "llama.vocab_size": 8, "llama.rope.dimension_count": 16,
            "llama.rope.freq_base": 10000.0}
    shapes = {"token_embd.weight": [32, 8], "blk.0.attn_norm.weight": [32], "blk.0.attn_q.weight": [32, 32], "blk.0.attn_k.weight": [32, 16],
              "blk.0.attn_v.weight": [32, 16], "blk.0.attn_output.weight": [32, 32], "blk.0.ffn_norm.weight": [32], "blk.0.ffn_gate.weight": [32, 32],
              "blk.0.ffn_up.weight": [32, 32], "blk.0.ffn_down.weight": [32, 32], "output_norm.weight": [32], "output.weight": [32, 8]}
    pieces = {"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>", "\u2581", "a", "b", "ab", "<0x0A>"],
              "tokenizer.ggml.scores": [0.0, 0.0, 0.0, -1.0, -2.0, -3.0, -4.0, 0.0], "tokenizer.ggml.token_type": [2, 3, 3, 1, 1, 1, 1, 6],
              "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.unknown_token_id": 0,
              "tokenizer.chat_template": "{{ messages[0].content }}"}
    merges = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.tokens": ["a", "b", "ab", "\u0120", "\u0120a", "<e>", "c", "d"],
              "tokenizer.ggml.merges": ["a b", "\u0120 a"], "tokenizer.ggml.token_type": [1, 1, 1, 1, 1, 3, 1, 1], "tokenizer.ggml.eos_token_id": 5}

    def tensors(kind):
        placed, end = [], 0
        for name, shape in shapes.items():
            is_block = kind == 8 and len(shape) == 2
            count = shape[0] * (shape[1] if len(shape) == 2 else 1)
            placed.append({"name": name, "shape": shape, "type": 8 if is_block else 0, "offset": end})
            end += (count // 32 * 34 if is_block else count * 4) + 31
            end -= end % 32
        return placed, end
    for name, kind, tokenizer in (("f32", 0, pieces), ("q8", 8, merges)):
        placed, end = tensors(kind)
        write("gguf", name, dumped({"version": 3, "metadata": dict(keys, **tokenizer), "tensors": placed, "bytes": end}))
    placed, end = tensors(8)
    write("gguf", "file", gguf(3, dict(keys, **pieces), placed, end))


def write_peft_adapter():
    config = json.loads(data("tiny-lora/adapter/adapter_config.json"))
    config["r"] = 2
    prefix = "base_model.model." + BLOCK + "self_attn."
    lora = {prefix + "q_proj.lora_A.weight": [2, 8], prefix + "q_proj.lora_B.weight": [8, 2], prefix + "v_proj.lora_A.weight": [2, 8],
            prefix + "v_proj.lora_B.weight": [4, 2]}
    write("peft_adapter", "lora", {"adapter_config.json": dumped(config), "adapter_model.safetensors": safetensors(lora)})
    dora = dict(lora, **{prefix + "q_proj.lora_magnitude_vector": [8], prefix + "v_proj.lora_magnitude_vector": [4],
                         "base_model.model.lm_head.weight": [8, 8]})
    write("peft_adapter", "dora", {"adapter_config.json": dumped(dict(config, use_dora=True, use_rslora=True, modules_to_save=["lm_head"])),
                                   "adapter_model.safetensors": safetensors(dora)})


for make in (write_safetensors, write_hf_directory, write_hub_listing, write_model_config, write_configuration, write_checkpoint, write_examples, write_tokenizer_json,
             write_sentencepiece, write_chat_template, write_gguf, write_peft_adapter):
    make()
