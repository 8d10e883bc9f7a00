"""Writes smollm2/: what llama.cpp and transformers compute with SmolLM2-135M-Instruct, from the file that zero reads.

usage: make_smollm2.py MODEL.gguf GSM8K BIN tests/data/smollm2
       (torch 2.13, transformers 5.24, gguf 0.19, xllamacpp 2026.10.11549)

MODEL.gguf is the file of `scripts/setup smollm2`, GSM8K a folder with train.jsonl and LICENSE, BIN the folder of zero's programs, of which zero_export
decodes the file for llama.cpp. transformers decodes the weights by the gguf package. llama.cpp's ids are used, because
those of transformers 5.24 differ from the published tokenizer where digits follow two spaces.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

ROWS, LONGEST, NEW_TOKENS, BEST = 16, 128, 32, 5
ASK = ["What is the capital of France?", "Give me three tips for staying healthy.", "Explain photosynthesis to a child.", "Who wrote Romeo and Juliet?",
       "Name the planets of the solar system, starting from the sun.", "Why is the sky blue?", "Write a Python function that adds two numbers.", "What is 17 + 25?"]
CHATS = [[{"role": "user", "content": text}] for text in ASK] + [
    [{"role": "system", "content": "You answer in one short sentence."}, {"role": "user", "content": "What is a glacier?"}],
    [{"role": "user", "content": "I have a dog called Rex."}, {"role": "assistant", "content": "Rex sounds like a wonderful companion!"},
     {"role": "user", "content": "What is my dog's name?"}]]
TEXTS = ["In the beginning God created the heaven and the earth.", "def add(a, b):\n    return a + b\n\n\ndef subtract(a, b):\n    return a - b\n",
         "Water boils at 100 degrees Celsius, and freezes at 0 degrees."]


class Llama:
    """A file in llama.cpp, without its flash attention, which rounds to F16 on CPUs, and with a cache in F32."""

    def __init__(self, path):
        import xllamacpp
        parameters = xllamacpp.CommonParams()
        parameters.model.path, parameters.n_ctx, parameters.n_parallel, parameters.n_gpu_layers = path, 512, 1, 0
        parameters.warmup, parameters.verbosity, parameters.cpuparams.n_threads = False, -1, 1
        parameters.cache_type_k = parameters.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
        parameters.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        self.server = xllamacpp.Server(parameters)

    def ask(self, path, body):
        request = urllib.request.Request(self.server.listening_address + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        return json.load(urllib.request.urlopen(request))

    def tokens(self, text):
        return self.ask("/tokenize", {"content": text, "add_special": True, "parse_special": True})["tokens"]

    def start(self, messages):
        """Ids of a conversation up to its answer."""
        return self.tokens(self.ask("/apply-template", {"messages": messages})["prompt"])

    def answer(self, messages):
        """Ids of the greedy answer, and how far apart the two best log-probabilities are at each."""
        start, ids, margins = self.start(messages), [], []
        while len(ids) < NEW_TOKENS:
            said = self.ask("/completion", {"prompt": start + ids, "n_predict": 1, "temperature": 0.0, "n_probs": 2, "cache_prompt": True, "return_tokens": True})
            best = said["completion_probabilities"][0]["top_logprobs"] if said.get("completion_probabilities") else []
            if not said["tokens"] and not best:
                break
            ids.append((said["tokens"] or [best[0]["id"]])[0])
            margins.append(round(best[0]["logprob"] - best[1]["logprob"], 3) if len(best) == 2 else 0.0)
            if said["stop_type"] == "eos":
                break
        return {"ids": ids, "margins": margins}


def rows_of(path, llama):
    """The first short rows as conversations, with their ids and labels: the answer and the token that ends it."""
    rows = []
    with open(path) as file:
        for line in map(json.loads, file):
            chat = [{"role": "user", "content": line["question"]}, {"role": "assistant", "content": line["answer"]}]
            prompt = llama.ask("/apply-template", {"messages": chat[:1]})["prompt"]
            start, ids = llama.tokens(prompt), llama.tokens(prompt + line["answer"] + "<|im_end|>\n")
            assert ids[:len(start)] == start
            if len(ids) <= LONGEST:
                trained = range(len(start), len(ids) - 1)  # without the newline behind the end of the turn
                rows.append((chat, torch.tensor([ids]), [(position, ids[position]) for position in trained]))
            if len(rows) == ROWS:
                return rows


def loss_sum(model, row):
    _, ids, trained = row
    logs = torch.log_softmax(model(ids).logits[0].float(), dim=-1)
    return -sum(logs[position - 1, id] for position, id in trained)


def logits_of(model, tokenizer, text):
    ids = tokenizer(text)["input_ids"]
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0]
    best = logits.topk(BEST, dim=-1)
    return {"text": text, "ids": ids, "best": best.indices.tolist(), "logits": [[round(v, 6) for v in row] for row in best.values.tolist()],
            "normalisers": [round(v, 6) for v in logits.double().logsumexp(dim=-1).tolist()]}


def main():
    path, gsm8k, bin, out = map(os.path.abspath, sys.argv[1:])
    os.makedirs(out, exist_ok=True)
    folder, name = os.path.split(path)
    with tempfile.TemporaryDirectory() as work:
        decoded = os.path.join(work, "decoded.gguf")
        subprocess.run([os.path.join(bin, "zero_export"), path, decoded, "--gguf", "F32"], check=True)
        llama = Llama(path)
        chats = [{"messages": chat, "start": llama.start(chat), "file": llama.answer(chat)} for chat in CHATS]
        rows = rows_of(os.path.join(gsm8k, "train.jsonl"), llama)
        with open(os.path.join(out, "gsm8k.jsonl"), "w") as file:
            file.writelines(json.dumps({"messages": chat}, ensure_ascii=False) + "\n" for chat, _, _ in rows)
        shutil.copyfile(os.path.join(gsm8k, "LICENSE"), os.path.join(out, "LICENSE.gsm8k"))
        llama = Llama(decoded)
        for chat in chats:
            chat["decoded"] = llama.answer(chat["messages"])
        del llama
        model, tokenizer = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32), AutoTokenizer.from_pretrained(folder, gguf_file=name)
        with torch.no_grad():
            loss = sum(loss_sum(model, row) for row in rows).item() / sum(len(row[2]) for row in rows)
        texts = [logits_of(model, tokenizer, text) for text in TEXTS]
    expected = {"chats": chats, "texts": texts, "loss": round(loss, 6), "trained_tokens": sum(len(row[2]) for row in rows)}
    with open(os.path.join(out, "expected.json"), "w") as file:
        file.write("{\n" + ",\n".join(f'"{key}": {json.dumps(value)}' for key, value in expected.items()) + "\n}\n")


main()
