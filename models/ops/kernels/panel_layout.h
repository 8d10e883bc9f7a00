#pragma once
// Panels: 16 rows of blocks, laid out so that a vector holds the same word of all 16. For each of a block's fp16
// numbers, and then for each four of its other bytes, come those of all rows.
#include <cstdint>

#include "base/error.h"
#include "base/numbers/ggml_codes.h"
#include "base/numbers/ggml_type.h"

namespace zero::kernels {

inline constexpr std::int64_t panel_rows = 16;

/// True for types that have blocks.
inline bool has_panels(GgmlType type) { return ggml_block(type) > 1; }

/// The panels of `rows` rows. Rows of zeros fill the last one up.
constexpr std::int64_t panels_of(std::int64_t rows) { return (rows + panel_rows - 1) / panel_rows; }

/// The bytes of the panels of `rows` rows of `length` values.
inline std::int64_t panel_bytes(GgmlType type, std::int64_t rows, std::int64_t length) {
  return panels_of(rows) * panel_rows * ggml_bytes(type, length);
}

/// Lays out `count` rows, at most 16, of consecutive blocks as a panel.
void to_panel(GgmlType type, const std::uint8_t* rows, std::int64_t count, std::int64_t length, std::uint8_t* panel);

/// Writes row `row` of a panel as consecutive blocks, which have the bits given to to_panel().
void from_panel(GgmlType type, const std::uint8_t* panel, std::int64_t row, std::int64_t length, std::uint8_t* blocks);

/// Where a type's blocks hold their fp16 numbers.
struct PanelLayout {
  int halves = 1;     // numbers of two bytes that lie together
  int halves_at = 0;  // their place in the block

  /// The place in the block of half i, and of word i.
  constexpr int half_at(int i) const { return halves_at + 2 * i; }
  constexpr int word_at(int i) const { return 4 * i < halves_at ? 4 * i : 4 * i + 2 * halves; }
};

template <class Type>
inline constexpr PanelLayout panel_layout{};
template <>
inline constexpr PanelLayout panel_layout<ggml::Q4_1>{.halves = 2};
template <>
inline constexpr PanelLayout panel_layout<ggml::Q5_1>{.halves = 2};
template <>
inline constexpr PanelLayout panel_layout<ggml::Q4_K>{.halves = 2};
template <>
inline constexpr PanelLayout panel_layout<ggml::Q5_K>{.halves = 2};
template <>
inline constexpr PanelLayout panel_layout<ggml::IQ4_XS>{.halves = 2};
template <>
inline constexpr PanelLayout panel_layout<ggml::Q2_K>{.halves = 2, .halves_at = 80};
template <>
inline constexpr PanelLayout panel_layout<ggml::Q3_K>{.halves_at = 108};
template <>
inline constexpr PanelLayout panel_layout<ggml::Q6_K>{.halves_at = 208};

/// Calls f(const Layout*) with a type's struct of ggml_codes.h.
template <class F>
void with_layout(GgmlType type, const F& f) {
  switch (type) {
#define BLOCK_TYPE(type, Layout) \
  case GgmlType::type:           \
    return f(static_cast<const ggml::Layout*>(nullptr));
#include "base/numbers/ggml_block_types.inl"
    default:
      throw InternalError("rows of this type are not laid out in panels");
  }
}

}  // namespace zero::kernels
