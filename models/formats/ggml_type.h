#pragma once
// The tensor types of GGUF files that are written here, and values in them.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace zero {

/// Numbers as in ggml's enum ggml_type.
enum class GgmlType : std::uint32_t { f32 = 0, f16 = 1, q8_0 = 8, bf16 = 30 };

/// Q8_0: so many values of a row share one scale. A block is the scale in fp16 and a signed byte per value.
inline constexpr std::int64_t q8_block = 32;

/// "F32", "F16", "BF16" or "Q8_0", in any case; InputError otherwise.
GgmlType ggml_type_of(const std::string& name);
const std::vector<std::string>& ggml_type_names();
const char* ggml_name(GgmlType type);

/// Bytes of `elements` values; of whole blocks only.
std::int64_t ggml_bytes(GgmlType type, std::int64_t elements);

/// The values of an fp32 CPU tensor as bytes [ggml_bytes], rounded to the nearest; Q8_0 exactly as
/// quantize_row_q8_0_ref of ggml: scale max|x| / 127, values rounded half away from zero.
at::Tensor to_ggml(const at::Tensor& values, GgmlType type);

}  // namespace zero
