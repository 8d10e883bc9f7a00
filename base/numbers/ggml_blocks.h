#pragma once
// Converts values to ggml's blocks and back, bit for bit as ggml's reference does (ggml-quants.c: quantize_row_*_ref,
// dequantize_row_*).
//   Q8_0  32 values: the scale max|x| / 127, then one signed byte per value, rounded half away from zero
//   Q4_0  32 values: the scale x / -8 for the x of largest magnitude, then 16 bytes: value i in the low half of byte i,
//         value 16 + i in the high half, each stored with 8 added
// All other block types are decoded only (ggml_codes.h).
#include <cstdint>

#include "base/numbers/ggml_type.h"
#include "base/numbers/number.h"

namespace zero {

/// Encodes values [whole blocks] as Q8_0 or Q4_0.
void encode_blocks(GgmlType type, const float* values, std::int64_t count, std::uint8_t* blocks);

/// Decodes `count` values (whole blocks) of any block type. Computes in fp32 and rounds once, to the floating type
/// `number`.
void decode_blocks(GgmlType type, const std::uint8_t* blocks, std::int64_t count, Number number, void* values);

}  // namespace zero
