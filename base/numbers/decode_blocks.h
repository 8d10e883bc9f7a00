#pragma once
// Decodes values in ggml types, to the bits of ggml_codes.h and of ggml's reference. Compiled once per kind of
// processor.
#include <cstdint>

#include "base/numbers/ggml_type.h"
#include "base/numbers/number.h"

namespace zero {

/// Values are decoded in multiples of this number.
inline constexpr std::int64_t decode_multiple = 32;

/// Decodes `count` values, which are whole blocks and a multiple of decode_multiple. The type is any but F32. `number`
/// is fp32 or bf16: values are computed in fp32 and rounded once.
void decode_blocks(GgmlType type, const std::uint8_t* blocks, std::int64_t count, Number number, void* values);

}  // namespace zero
