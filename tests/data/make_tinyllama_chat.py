"""Makes the ids in tinyllama-chat/: in tokenizer-cases.json those that SentencePiece gives texts, and in chat-cases.json, of conversations, by
transformers, the text that the folder's chat template writes, its ids, which of them are trained (those of the assistant's text and of the
token that ends it), and the prompt that asks for the last message. Texts and messages are read from the files themselves: to add a case add
it there. The tokenizer and its settings are TinyLlama's (THIRD_PARTY.md).

usage: python make_tinyllama_chat.py tests/data        (transformers 5.23, sentencepiece 0.2)
"""
import json
import os
import sys

from sentencepiece import SentencePieceProcessor
from transformers import LlamaTokenizer

folder = os.path.join(sys.argv[1], "tinyllama-chat")
tokenizer = LlamaTokenizer.from_pretrained(folder)
ANSWER = "{{ '<|assistant|>\n'  + message['content'] + eos_token }}"
MARKED = "{{ '<|assistant|>\n' }}{% generation %}{{ message['content'] + eos_token }}{% endgeneration %}{{ '' }}"  # a block at a line's end would eat that
assert tokenizer.chat_template.count(ANSWER) == 1
marked = tokenizer.chat_template.replace(ANSWER, MARKED)


def rewrite(name, case_of):
    path = os.path.join(folder, name)
    with open(path) as file:
        cases = json.load(file)
    cases = [case_of(case) for case in cases]
    with open(path, "w") as file:
        json.dump(cases, file, ensure_ascii=False, indent=0)


def ids_of(text):
    return tokenizer(text, add_special_tokens=False).input_ids


def chat_case(case):
    messages = case["messages"]
    text = tokenizer.apply_chat_template(messages, tokenize=False)
    both = tokenizer.apply_chat_template(messages, chat_template=marked, return_dict=True, return_assistant_tokens_mask=True)
    assert both["input_ids"] == ids_of(text), "the marked template writes another text"
    prompt = tokenizer.apply_chat_template(messages[:-1], tokenize=False, add_generation_prompt=True)
    return {"messages": messages, "text": text, "ids": ids_of(text), "trained": both["assistant_masks"], "prompt_text": prompt,
            "prompt_ids": ids_of(prompt)}


processor = SentencePieceProcessor(model_file=os.path.join(folder, "tokenizer.model"))
rewrite("tokenizer-cases.json", lambda case: {"text": case["text"], "ids": processor.encode(case["text"])})
rewrite("chat-cases.json", chat_case)
