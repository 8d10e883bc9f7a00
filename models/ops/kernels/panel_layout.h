#pragma once
// PanelLayout: the order of a block's bytes in a panel (code_panels.h). For each of the block's fp16 numbers, and then
// for each four of its other bytes, come those of all 16 rows.
#include "base/error.h"
#include "base/numbers/ggml_codes.h"
#include "base/numbers/ggml_type.h"

namespace zero::kernels {

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
