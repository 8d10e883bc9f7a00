"""Makes nf4.safetensors: two weights in bf16, one after the other as in a quantized unit, as bitsandbytes (0.50.2, CPU) quantises
them to NF4 with blocks of 64, plain and with compress_statistics.

Its scales of scales are kept twice: as its CPU library rounds them, by a table of 65536 steps over [-1, 1] and thus now and then
to the second nearest entry, and as its reference operator and its CUDA kernel do, to the nearest.

usage: python make_nf4.py tests/data        (needs torch and bitsandbytes)
"""
import sys

import bitsandbytes.functional as bnb
import torch
from safetensors.torch import save_file

torch.manual_seed(7)
torch.set_num_threads(1)
SHAPES = {"q": (64, 320), "k": (20, 192)}  # 320 and 60 blocks: whole and broken groups of 256


def reference_codes(scales):
    quantize = torch.ops.bitsandbytes.quantize_blockwise.default
    return quantize.redispatch(torch._C.DispatchKeySet(torch._C.DispatchKey.CompositeExplicitAutograd), scales, bnb.create_dynamic_map(), 256)


tensors = {"dynamic_map": bnb.create_dynamic_map()}
for name, shape in SHAPES.items():
    weight = (torch.randn(shape) * 0.05 * torch.randn(shape[0], 1).exp()).bfloat16()
    weight.view(-1)[128:192] = 0
    codes, plain = bnb.quantize_4bit(weight, blocksize=64, quant_type="nf4")
    same_codes, double = bnb.quantize_4bit(weight, blocksize=64, quant_type="nf4", compress_statistics=True)
    assert torch.equal(codes, same_codes)
    nearest, largest = reference_codes(plain.absmax - double.offset)
    assert torch.equal(largest, double.state2.absmax)
    tensors |= {f"{name}.weight": weight, f"{name}.codes": codes.view(-1), f"{name}.absmax": plain.absmax,
                f"{name}.plain": bnb.dequantize_4bit(codes, plain), f"{name}.double": bnb.dequantize_4bit(codes, double),
                f"{name}.offset": double.offset.view(1), f"{name}.second_absmax": double.state2.absmax,
                f"{name}.scale_codes_cpu": double.absmax, f"{name}.scale_codes_nearest": nearest}
    print(name, "second nearest:", (nearest != double.absmax).sum().item(), "of", nearest.numel())
save_file(tensors, sys.argv[1] + "/nf4.safetensors", {"made_by": "make_nf4.py"})
