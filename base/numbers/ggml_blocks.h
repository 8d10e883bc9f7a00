#pragma once
// Converts values to ggml's blocks, bit for bit as ggml's reference does (quantize_row_*_ref of ggml-quants.c).
//   Q8_0  32 values: the scale max|x| / 127, then one signed byte per value, rounded half away from zero
//   Q4_0  32 values: the scale x / -8 for the x of largest magnitude, then 16 bytes: value i in the low half of byte i,
//         value 16 + i in the high half, each stored with 8 added
// decode_blocks.h decodes these and all other types.
#include <cstdint>

#include "base/numbers/ggml_type.h"

namespace zero {

/// Encodes values [whole blocks] as Q8_0 or Q4_0.
void encode_blocks(GgmlType type, const float* values, std::int64_t count, std::uint8_t* blocks);

}  // namespace zero
