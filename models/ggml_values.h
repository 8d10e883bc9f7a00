#pragma once
// Converts values in ggml number types from and to tensors of the host.
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "base/numbers/ggml_type.h"

namespace zero {

/// Encodes an fp32 CPU tensor in F32, F16, BF16, Q8_0 or Q4_0, [ggml_bytes], rounded to nearest, in blocks as in
/// base/numbers/ggml_blocks.h. On all threads.
void to_ggml(const at::Tensor& values, GgmlType type, std::uint8_t* bytes);
at::Tensor to_ggml(const at::Tensor& values, GgmlType type);

/// Decodes `bytes` [ggml_bytes(type, out.numel())], rounded once to the type of `out`: contiguous, on the CPU, of a
/// floating type. On all threads, invisible to autograd.
void from_ggml(const std::uint8_t* bytes, GgmlType type, const at::Tensor& out);

}  // namespace zero
