"""Makes ggml_blocks.safetensors: values, and their blocks as the Python package gguf (0.19.0) quantises and reads them, to the bits of ggml's
reference.

usage: python make_ggml_blocks.py tests/data        (needs numpy, safetensors and gguf)
"""

import sys

import numpy as np
from gguf import GGMLQuantizationType as Type, quants
from safetensors.numpy import save_file

draw = np.random.default_rng(0)
values = draw.standard_normal((24, 256), dtype=np.float32)
values[0] = 0
values[1] *= np.float32(1e-7)  # scales below the smallest normal number of fp16
values[2] *= np.float32(1e4)
values[3, :] = np.tile(np.arange(-16, 16, dtype=np.float32) / 2, 8)  # halves
values[3, ::32] = 127
values[4, 5:] = 0
tensors = {"values": values}
for name, type in (("q8_0", Type.Q8_0), ("q4_0", Type.Q4_0)):
    blocks = quants.quantize(values, type)
    tensors[name], tensors[name + ".values"] = blocks, quants.dequantize(blocks, type)
# Read only: any bytes, with scales that are numbers.
blocks = draw.integers(0, 256, (24, 210), dtype=np.uint8)
blocks[:, 208:] = draw.standard_normal((24, 1)).astype(np.float16).view(np.uint8)
tensors["q6_k"], tensors["q6_k.values"] = blocks, quants.dequantize(blocks, Type.Q6_K)
save_file(tensors, sys.argv[1] + "/ggml_blocks.safetensors", {"made_by": "make_ggml_blocks.py"})
