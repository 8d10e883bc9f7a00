#pragma once
// GgmlType: the supported number types of ggml (llama.cpp). A block type stores consecutive values of a row together,
// with a scale in fp16. Blocks are little-endian, without gaps.
#include <cstdint>

namespace zero {

/// Numbers as in ggml's enum ggml_type.
enum class GgmlType : std::uint32_t { f32 = 0, f16 = 1, q4_0 = 2, q8_0 = 8, q6_k = 14, bf16 = 30 };

inline constexpr std::int64_t q8_block = 32;  // values of a block of Q8_0 or Q4_0

/// "F32", "Q8_0", ... as llama.cpp writes them.
const char* ggml_name(GgmlType type);
/// Values of a block, 1 for types without blocks, and its bytes.
std::int64_t ggml_block(GgmlType type);
std::int64_t ggml_block_bytes(GgmlType type);
/// Bytes of `elements` values, which are whole blocks.
std::int64_t ggml_bytes(GgmlType type, std::int64_t elements);

}  // namespace zero
