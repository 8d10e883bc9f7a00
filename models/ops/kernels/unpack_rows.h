#pragma once
// Decodes rows in ggml types, to the same bits as decode_blocks(). Uses plain pointers and no LibTorch, and is compiled
// once per kind of processor.
#include <cstdint>

#include "base/numbers/ggml_type.h"
#include "base/numbers/number.h"

namespace zero::kernels {

/// A row must have a multiple of this many values, and consist of whole blocks.
inline constexpr std::int64_t packed_row_multiple = 32;

/// Decodes `count` values, which are whole blocks and a multiple of packed_row_multiple, to fp32 or bf16. The type is
/// any but F32.
void unpack_rows(GgmlType type, const std::uint8_t* blocks, std::int64_t count, Number number, void* values);

}  // namespace zero::kernels
