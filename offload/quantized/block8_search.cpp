#include "offload/quantized/block8_search.h"

#include <bit>
#include <cmath>
#include <limits>

namespace zero {
namespace {

constexpr int powers = 7;  // and one more for the code 1 alone

struct Point {
  double x, count;
};

}  // namespace

Block8Search::Block8Search(std::span<const float, 255> all, bool is_signed) {
  const std::span<const float> midpoints = all.subspan(is_signed ? 127 : 0);  // the j-th lies below code j + 1
  const auto first_code = [&](int p) { return is_signed ? 1 << p : (2 << p) - 1; };
  const auto below = [&](int p) { return midpoints[std::size_t(first_code(p) - 1)]; };

  border.fill(std::numeric_limits<float>::infinity());
  const auto bin = [](float x) { return std::bit_cast<std::uint32_t>(x) >> 24 & 15; };
  for (int p = 1; p <= powers; ++p) {
    border[bin(below(p))] = below(p);
    for (std::uint32_t b = bin(below(p)) + 1; b < 16; ++b) power[b] = p;
  }

  for (int p = 0; p < powers; ++p) {
    const int end = first_code(p + 1);
    // The midpoint between neighbours of different powers lies at a fifth of the wider distance.
    const Point begin = p > 0       ? Point{below(p), first_code(p) + 0.2}
                        : is_signed ? Point{0, 0.5}
                                    : Point{midpoints[0], 1},
                last{midpoints[std::size_t(end - 2)], double(end - 1)};
    const double rise = (last.count - begin.count) / (last.x - begin.x);
    slope[p] = float(rise);
    offset[p] = float(last.count - rise * last.x - 0.5) - slack;
    highest[p] = float(end - 1);
  }
  slope[powers] = 1;  // infinity, too, stays one
  offset[powers] = highest[powers] = float(first_code(powers));
  for (auto* numbers : {&slope, &offset, &highest})
    for (std::size_t p = 0; p < 8; ++p) (*numbers)[p + 8] = (*numbers)[p];
}

}  // namespace zero
