#pragma once
// Converts between ggml number types and host tensors.
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "base/numbers/ggml_type.h"

namespace zero {

/// Encodes an fp32 CPU tensor in F32, F16, BF16, Q8_0 or Q4_0, [ggml_bytes], rounded to nearest, with the blocks of
/// base/numbers/ggml_blocks.h. Runs on all threads.
void to_ggml(const at::Tensor& values, GgmlType type, std::uint8_t* bytes);
at::Tensor to_ggml(const at::Tensor& values, GgmlType type);

/// Decodes `bytes` [ggml_bytes(type, out.numel())] and rounds once to the type of `out`, a contiguous CPU tensor of a
/// floating type. Runs on all threads. Autograd does not record it.
void from_ggml(const std::uint8_t* bytes, GgmlType type, const at::Tensor& out);

}  // namespace zero
