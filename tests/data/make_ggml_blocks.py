"""Makes ggml_blocks.safetensors: blocks of every type and their values as the Python package gguf (0.19.0) reads them, to the bits of ggml's
reference. Makes gguf_types.gguf too: a small Llama with a matrix in each of the types, written by that package.

usage: python make_ggml_blocks.py tests/data        (needs numpy, safetensors and gguf)
"""

import sys

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as Type, GGUFWriter, quants
from safetensors.numpy import save_file

# The places of the fp16 scales in a block.
SCALES = {Type.Q4_1: (0, 2), Type.Q5_0: (0,), Type.Q5_1: (0, 2), Type.Q2_K: (80, 82), Type.Q3_K: (108,), Type.Q4_K: (0, 2), Type.Q5_K: (0, 2),
          Type.Q6_K: (208,), Type.IQ4_NL: (0,), Type.IQ4_XS: (0,)}


def random_blocks(draw, type, rows, columns, size):
    """Any bytes, with scales of about this size."""
    values, bytes = GGML_QUANT_SIZES[type]
    blocks = draw.integers(0, 256, (rows * columns // values, bytes), dtype=np.uint8)
    for place in SCALES[type]:
        blocks[:, place:place + 2] = (size * draw.standard_normal((len(blocks), 1))).astype(np.float16).view(np.uint8)
    return blocks.reshape(rows, columns // values * bytes)


def write_blocks(path):
    draw = np.random.default_rng(0)
    values = draw.standard_normal((24, 256), dtype=np.float32)
    values[0] = 0
    values[1] *= np.float32(1e-7)  # scales below the smallest normal number of fp16
    values[2] *= np.float32(1e4)
    values[3, :] = np.tile(np.arange(-16, 16, dtype=np.float32) / 2, 8)  # halves
    values[3, ::32] = 127
    values[4, 5:] = 0
    tensors = {"values": values}
    for type in (Type.Q8_0, Type.Q4_0):
        blocks = quants.quantize(values, type)
        tensors[type.name], tensors[type.name + ".values"] = blocks, quants.dequantize(blocks, type)
    for type in SCALES:  # read only
        blocks = random_blocks(draw, type, 8, 256, 1)
        tensors[type.name], tensors[type.name + ".values"] = blocks, quants.dequantize(blocks, type)
    save_file(tensors, path, {"made_by": "make_ggml_blocks.py"})


def write_model(path):
    """One head of 64, 256 wide: rows of whole blocks of 256 values, except those of o and down."""
    draw = np.random.default_rng(1)
    writer = GGUFWriter(path, "llama")
    writer.add_name("types")
    writer.add_context_length(64)
    writer.add_embedding_length(256)
    writer.add_block_count(2)
    writer.add_feed_forward_length(64)
    writer.add_head_count(1)
    writer.add_head_count_kv(1)
    writer.add_key_length(64)
    writer.add_value_length(64)
    writer.add_rope_dimension_count(64)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(32)
    types = ({"attn_q": Type.Q4_K, "attn_k": Type.Q5_K, "attn_v": Type.Q6_K, "attn_output": Type.Q4_1, "ffn_gate": Type.Q2_K, "ffn_up": Type.Q3_K,
              "ffn_down": Type.Q5_0},
             {"attn_q": Type.IQ4_XS, "attn_k": Type.Q4_K, "attn_v": Type.Q4_1, "attn_output": Type.Q5_1, "ffn_gate": Type.Q6_K,
              "ffn_up": Type.Q5_K, "ffn_down": Type.IQ4_NL})
    for name in ("token_embd", "output"):
        writer.add_tensor(name + ".weight", (0.1 * draw.standard_normal((32, 256))).astype(np.float16))
    writer.add_tensor("output_norm.weight", np.ones(256, np.float32))
    for block, of in enumerate(types):
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{block}.{name}.weight", np.ones(256, np.float32))
        for name, type in of.items():
            rows, columns = (256, 64) if name in ("attn_output", "ffn_down") else (64, 256)
            blocks = random_blocks(draw, type, rows, columns, 1)
            largest = np.abs(quants.dequantize(blocks, type)).max()
            draw_again = np.random.default_rng(2)
            blocks = random_blocks(draw_again, type, rows, columns, 0.3 / largest)
            writer.add_tensor(f"blk.{block}.{name}.weight", blocks, raw_dtype=type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


write_blocks(sys.argv[1] + "/ggml_blocks.safetensors")
write_model(sys.argv[1] + "/gguf_types.gguf")
