#include "models/ops/kernels/panel_layout.h"

#include <cstring>
#include <utility>

namespace zero::kernels {
namespace {

/// Calls f(place in a row's block, place in the panel's block, bytes) for each piece of a row's block.
template <class Layout, class F>
void by_piece(std::int64_t row, const F& f) {
  constexpr PanelLayout layout = panel_layout<Layout>;
  constexpr int words = (Layout::bytes - 2 * layout.halves) / 4;
  for (int i = 0; i < layout.halves; ++i) f(layout.half_at(i), i * 32 + row * 2, std::integral_constant<int, 2>());
  for (int i = 0; i < words; ++i)
    f(layout.word_at(i), layout.halves * 32 + i * 64 + row * 4, std::integral_constant<int, 4>());
}

}  // namespace

void to_panel(GgmlType type, const std::uint8_t* rows, std::int64_t count, std::int64_t length, std::uint8_t* panel) {
  with_layout(type, [&]<class Layout>(const Layout*) {
    const std::int64_t blocks = length / Layout::values;
    if (count < panel_rows) std::memset(panel, 0, static_cast<std::size_t>(blocks * Layout::bytes * panel_rows));
    for (std::int64_t b = 0; b < blocks; ++b)
      for (std::int64_t row = 0; row < count; ++row) {
        const std::uint8_t* from = rows + (row * blocks + b) * Layout::bytes;
        std::uint8_t* to = panel + b * Layout::bytes * panel_rows;
        by_piece<Layout>(row, [&](auto at, auto in_panel, auto n) { std::memcpy(to + in_panel, from + at, n); });
      }
  });
}

void from_panel(GgmlType type, const std::uint8_t* panel, std::int64_t row, std::int64_t length, std::uint8_t* blocks) {
  with_layout(type, [&]<class Layout>(const Layout*) {
    for (std::int64_t b = 0; b < length / Layout::values; ++b) {
      std::uint8_t* to = blocks + b * Layout::bytes;
      const std::uint8_t* from = panel + b * Layout::bytes * panel_rows;
      by_piece<Layout>(row, [&](auto at, auto in_panel, auto n) { std::memcpy(to + at, from + in_panel, n); });
    }
  });
}

}  // namespace zero::kernels
