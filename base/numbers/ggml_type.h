#pragma once
// GgmlType: the supported number types of ggml (llama.cpp). A block type stores consecutive values of a row as one
// block of codes with scales. Blocks are little-endian and have no gaps.
#include <cstdint>
#include <optional>
#include <vector>

namespace zero {

/// The enumerators have the numbers of ggml's enum ggml_type.
enum class GgmlType : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  iq4_nl = 20,
  iq4_xs = 23,
  bf16 = 30
};

inline constexpr std::int64_t q8_block = 32;  // values of a block of Q8_0, and the fewest of any block type

/// All types above.
std::vector<GgmlType> ggml_types();
/// The type with this number in a file; none if it is not supported.
std::optional<GgmlType> ggml_type_of_number(std::uint32_t number);
/// "F32", "Q8_0", ... as llama.cpp writes them.
const char* ggml_name(GgmlType type);
/// The number of values in a block (1 for types without blocks), and the bytes of a block.
std::int64_t ggml_block(GgmlType type);
std::int64_t ggml_block_bytes(GgmlType type);
/// The bytes of `elements` values, which must fill whole blocks.
std::int64_t ggml_bytes(GgmlType type, std::int64_t elements);

}  // namespace zero
