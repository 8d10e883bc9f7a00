#pragma once
// GgmlType: the supported number types of ggml (llama.cpp). A block type stores consecutive values of a row as one
// block with an fp16 scale. Blocks are little-endian and have no gaps.
#include <cstdint>

namespace zero {

/// The enumerators have the numbers of ggml's enum ggml_type.
enum class GgmlType : std::uint32_t { f32 = 0, f16 = 1, q4_0 = 2, q8_0 = 8, q6_k = 14, bf16 = 30 };

inline constexpr std::int64_t q8_block = 32;  // values of a block of Q8_0 or Q4_0

/// "F32", "Q8_0", ... as llama.cpp writes them.
const char* ggml_name(GgmlType type);
/// The number of values in a block (1 for types without blocks), and the bytes of a block.
std::int64_t ggml_block(GgmlType type);
std::int64_t ggml_block_bytes(GgmlType type);
/// The bytes of `elements` values, which must fill whole blocks.
std::int64_t ggml_bytes(GgmlType type, std::int64_t elements);

}  // namespace zero
