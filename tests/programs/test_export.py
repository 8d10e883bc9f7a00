"""Runs zero_export and zero_generate as a user does: a model with an adapter as folder and as GGUF file, the same logits from
both ways to the merged model, a chat through a pipe, and refusals with exit code 2, one message and nothing written.

usage: test_export.py BIN TESTS_DATA        exits 1 when something is wrong
"""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile


def run(*command, text=None):
    """(exit code, standard output, lines of standard error)"""
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr.splitlines()


def read_safetensors(path):
    """{name: (dtype, shape, bytes)}"""
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(size)), file.read()
    return {name: (t["dtype"], t["shape"], data[t["data_offsets"][0]:t["data_offsets"][1]]) for name, t in header.items() if name != "__metadata__"}


def floats(tensor):
    return struct.unpack(f"<{len(tensor[2]) // 4}f", tensor[2])


def final_adapter(data, folder):
    """The adapter of the golden case as it is after training, in PEFT's layout."""
    os.makedirs(folder)
    shutil.copy(os.path.join(data, "tiny-lora/adapter/adapter_config.json"), folder)
    header, blob = {}, b""
    for name, (dtype, shape, content) in read_safetensors(os.path.join(data, "tiny-lora/expect.safetensors")).items():
        if name.startswith("final."):
            header[name[len("final."):].replace(".default.", ".")] = {"dtype": dtype, "shape": shape, "data_offsets": [len(blob), len(blob) + len(content)]}
            blob += content
    text = json.dumps(header).encode()
    with open(os.path.join(folder, "adapter_model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + blob)


def check_logits(bin, data, folder):
    """The merged logits of the golden case, through --adapter and through an exported folder."""
    model, adapter, merged = os.path.join(data, "tiny-lora/model"), os.path.join(folder, "adapter"), os.path.join(folder, "merged")
    final_adapter(data, adapter)
    ids = os.path.join(folder, "ids.bin")
    with open(os.path.join(data, "tiny-lora/tokens.bin"), "rb") as file, open(ids, "wb") as out:
        out.write(file.read(48))
    expected = floats(read_safetensors(os.path.join(data, "tiny-lora/expect.safetensors"))["merged.logits"])[:24 * 512]
    code, _, err = run(bin + "/zero_export", model, merged, "--adapter", adapter)
    assert code == 0, err
    assert {t[0] for t in read_safetensors(merged + "/model.safetensors").values()} == {"F32"}  # as the base is stored
    for command in ([model, "--adapter", adapter], [merged]):
        out = os.path.join(folder, "logits.safetensors")
        code, _, err = run(bin + "/zero_generate", *command, "--ids", ids, "--logits", out)
        assert code == 0, err
        logits = floats(read_safetensors(out)["logits"])
        worst = max(abs(a - b) for a, b in zip(logits, expected))
        assert len(logits) == len(expected) and worst < 1e-4, f"{command}: logits off by {worst}"
    code, _, err = run(bin + "/zero_export", model, merged, "--adapter", adapter, "--type", "bf16", "--overwrite")
    assert code == 0, err
    assert {t[0] for t in read_safetensors(merged + "/model.safetensors").values()} == {"BF16"}
    code, _, err = run(bin + "/zero_export", model, folder + "/a.gguf", "--adapter", adapter, "--gguf", "q8_0")
    assert code == 0 and open(folder + "/a.gguf", "rb").read(8) == b"GGUF\x03\0\0\0", err
    base = folder + "/base.gguf"  # the same from a GGUF base, and the adapter as GGUF
    code, _, err = run(bin + "/zero_export", model, base, "--gguf", "F32")
    assert code == 0, err
    code, _, err = run(bin + "/zero_generate", base, "--adapter", adapter, "--ids", ids, "--logits", out)
    assert code == 0 and max(abs(a - b) for a, b in zip(floats(read_safetensors(out)["logits"]), expected)) < 1e-4, err
    check_adapter_of_blocks(bin, model, adapter, ids, folder)
    made = [folder + "/" + name for name in ("adapter.gguf", "again.gguf")]
    for source, path in zip((model, base), made):
        code, _, err = run(bin + "/zero_export", source, path, "--gguf-adapter", adapter)
        assert code == 0, err
    with open(made[0], "rb") as file, open(made[1], "rb") as again:
        content = file.read()
        assert content == again.read() and b"adapter.lora.alpha" in content and b"blk.0.attn_q.weight.lora_a" in content
    code, _, err = run(bin + "/zero_generate", made[0], "--prompt", "x")
    assert code == 2 and "no model" in err[-1], err


def check_adapter_of_blocks(bin, model, adapter, ids, folder):
    """A base in 8 bits is held as stored beside the adapter. Its logits are those of the decoded base with the adapter merged."""
    base, merged, out, logits = folder + "/base8.gguf", folder + "/merged8", folder + "/logits8.safetensors", []
    assert run(bin + "/zero_export", model, base, "--gguf", "q8_0")[0] == 0
    assert run(bin + "/zero_export", base, merged, "--adapter", adapter, "--type", "fp32")[0] == 0
    for command, held in (([base, "--adapter", adapter], "as stored (Q8_0; arithmetic in fp32)"), ([merged], "in fp32")):
        code, _, err = run(bin + "/zero_generate", *command, "--ids", ids, "--logits", out)
        assert code == 0 and any(held in line for line in err), err
        logits.append(floats(read_safetensors(out)["logits"]))
    assert max(abs(a - b) for a, b in zip(*logits)) < 1e-4


def talker(data, folder):
    """A model directory with TinyLlama's tokenizer whose weights are small and regular."""
    shutil.copytree(os.path.join(data, "tinyllama-chat"), folder)
    config = {"model_type": "llama", "vocab_size": 32000, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
              "max_position_embeddings": 128, "tie_word_embeddings": True, "bos_token_id": 1, "eos_token_id": 2}
    for name in os.listdir(folder):
        os.chmod(os.path.join(folder, name), 0o644)
    with open(folder + "/config.json", "w") as file:
        json.dump(config, file)
    layer = "model.layers.0."
    shapes = {"model.embed_tokens.weight": [32000, 32], "model.norm.weight": [32], layer + "input_layernorm.weight": [32], layer + "post_attention_layernorm.weight": [32]}
    shapes |= {layer + f"self_attn.{p}_proj.weight": [32, 32] for p in "qkvo"} | {layer + f"mlp.{p}_proj.weight": [32, 32] for p in ("gate", "up", "down")}
    header, blob = {}, b""
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        content = struct.pack(f"<{count}f", *(((i * 7919 + len(blob)) % 1999 - 999) / 1999 for i in range(count)))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(blob), len(blob) + len(content)]}
        blob += content
    text = json.dumps(header).encode()
    with open(folder + "/model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + blob)


def check_chat(bin, data, folder):
    model, copy = folder + "/talker", folder + "/copy"
    talker(data, model)
    with open(model + "/generation_config.json", "w") as file:
        json.dump({"eos_token_id": [2, 17]}, file)
    said = "Hi\n" + "Tell me more about it.\n" * 6
    code, out, err = run(bin + "/zero_generate", model, "--chat", "--system", "Be kind.", "--max-new-tokens", "12", text=said + "/exit\nnot read\n")
    assert code == 0 and out.count("\n") >= 7, (code, out, err)
    assert any("oldest" in line for line in err), err  # a context of 128 tokens holds no seven turns
    code, _, err = run(bin + "/zero_export", model, copy)
    assert code == 0, err
    assert run(bin + "/zero_generate", copy, "--chat", "--system", "Be kind.", "--max-new-tokens", "12", text=said)[:2] == (0, out)
    with open(copy + "/generation_config.json") as file:
        assert json.load(file)["eos_token_id"] == [2, 17]
    code, _, err = run(bin + "/zero_export", model, folder + "/b.gguf", "--gguf", "F16")
    with open(folder + "/b.gguf", "rb") as file:
        content = file.read()
    assert code == 0 and b"tokenizer.chat_template" in content and b"<|assistant|>" in content and b"\0output.weight" not in content, err


def check_count_of_what_was_made(bin, data, folder):
    talker(data, folder + "/talker")
    with open(folder + "/prompts.txt", "w") as file:
        file.write("Hi\nTell me more about it.\n")
    for options in (["--prompt", "Hi", "--json"], ["--prompts", folder + "/prompts.txt"]):
        code, out, err = run(bin + "/zero_generate", folder + "/talker", *options, "--max-new-tokens", "5")
        made = sum(len(json.loads(line)["ids"]) for line in out.splitlines())
        assert code == 0 and made > 1 and any(f" s; made {made} in " in line for line in err), (made, err)
    os.remove(folder + "/talker/tokenizer_config.json")
    code, _, err = run(bin + "/zero_generate", folder + "/talker", "--chat", text="")
    assert code == 2 and "name by --chat-template one of zephyr" in err[-1] and "data." not in err[-1], err


def check_refusals(bin, data, folder):
    lora, tiny = os.path.join(data, "tiny-lora"), os.path.join(data, "tiny-tied-bf16-sharded/model")
    export, generate, out = bin + "/zero_export", bin + "/zero_generate", folder + "/out"
    broken = folder + "/broken"
    shutil.copytree(lora + "/adapter", broken)
    os.chmod(broken + "/adapter_model.safetensors", 0o644)
    os.truncate(broken + "/adapter_model.safetensors", 9000)
    os.mkdir(folder + "/files")
    for size, name in enumerate(["a-lora.gguf", "m.gguf"]):
        with open(f"{folder}/files/{name}", "wb") as file:
            file.write(b"GGUF" + bytes(size))
    cases = [
        ([export, lora + "/model", out, "--adapter", folder + "/nowhere"], "there is no such directory"),
        ([export, lora + "/model", out, "--adapter", broken], "adapter_model.safetensors"),
        ([export, tiny, out, "--adapter", lora + "/adapter"], "another base model"),
        ([export, folder + "/nowhere", out], "nowhere"),
        ([export, lora + "/adapter", out], "is an adapter"),
        ([export, lora + "/model", lora + "/model", "--overwrite"], "name another place"),
        ([export, lora + "/model", folder + "/talker"], "--overwrite"),
        ([export, lora + "/model", folder, "--gguf", "F32"], "folder"),
        ([export, lora + "/model", out, "--gguf", "Q4_K"], "Q4_K"),
        ([export, lora + "/model", out, "--gguf", "F32", "--tokenizer", os.path.join(data, "tinyllama-chat")], "belong together"),
        ([export, os.path.join(data, "families/qwen3/model"), out, "--gguf", "F32", "--tokenizer", os.path.join(data, "pipelines/qwen")], "belong together"),
        # the model before its tokenizer
        ([export, os.path.join(data, "families/mistral-window/model"), out, "--gguf", "F32", "--tokenizer", folder + "/nowhere"], "sees 5 tokens (sliding_window)"),
        ([generate, tiny, "--adapter", lora + "/adapter", "--prompt", "x"], "another base model"),
        ([generate, lora + "/model", "--adapter", broken, "--prompt", "x"], "adapter_model.safetensors"),
        ([generate, lora + "/model", "--chat"], "tokenizer.model"),
        ([generate, folder + "/files", "--prompt", "x"], "name the file, " + folder + "/files/m.gguf"),
    ]
    for command, piece in cases:
        before = sorted(os.listdir(folder))
        code, printed, err = run(*command, text="")
        messages = [line for line in err if line.startswith("error: ")]
        assert code == 2 and len(messages) == 1 and piece in messages[0] and not printed, (command, code, err)
        assert sorted(os.listdir(folder)) == before, command


def main():
    bin, data = (os.path.abspath(path) for path in sys.argv[1:3])
    for check in (check_logits, check_chat, check_count_of_what_was_made, check_refusals):
        with tempfile.TemporaryDirectory(prefix="zero-export-") as folder:
            if check is check_refusals:
                os.makedirs(folder + "/talker/model")
            check(bin, data, folder)
        print(check.__name__, "ok", flush=True)


if __name__ == "__main__":
    main()
