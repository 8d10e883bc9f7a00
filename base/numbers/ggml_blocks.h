#pragma once
// Converts blocks of ggml from and to values, to the bits of its reference (ggml-quants.c): quantize_row_*_ref,
// dequantize_row_*.
//   Q8_0  32 values: scale max|x| / 127, then a signed byte for each, rounded half away from zero
//   Q4_0  32 values: scale x / -8 of the x that is largest by size, then 16 bytes: value i in the low half of byte i,
//         value 16 + i in the high one, each 8 more than it stands for
//   Q6_K  256 values in 16 groups with a scale of 8 bits each; read only
#include <cstdint>

#include "base/numbers/ggml_type.h"
#include "base/numbers/number.h"

namespace zero {

/// Encodes values [whole blocks] as Q8_0 or Q4_0.
void encode_blocks(GgmlType type, const float* values, std::int64_t count, std::uint8_t* blocks);

/// Decodes `count` values of whole blocks, computed in fp32 and rounded once to a floating type.
void decode_blocks(GgmlType type, const std::uint8_t* blocks, std::int64_t count, Number number, void* values);

}  // namespace zero
