#include "offload/quantized/block8.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace zero {
namespace {

/// Each decade from 1e-6 to 1 has the midpoints of equal parts, twice as many as the decade below it.
std::vector<float> dynamic_codes(bool is_signed) {
  std::vector<float> codes{0.0F, 1.0F};
  for (int power = 0; power < 7; ++power) {
    const int parts = is_signed ? 1 << power : 2 << power;
    for (int i = 0; i < parts; ++i) {
      const auto edge = [&](int k) { return static_cast<float>(0.1 + 0.9 * k / parts); };
      const auto mean = (edge(i) + edge(i + 1)) / 2.0F;
      const auto code = static_cast<float>(std::pow(10.0, power - 6) * static_cast<double>(mean));
      codes.push_back(code);
      if (is_signed) codes.push_back(-code);
    }
  }
  std::sort(codes.begin(), codes.end());
  return codes;
}

}  // namespace

Block8Map::Block8Map(bool is_signed) : first_(std::size_t{1} << 16) {
  const std::vector<float> codes = dynamic_codes(is_signed);
  std::copy(codes.begin(), codes.end(), codes_.begin());
  for (std::size_t i = 0; i + 1 < codes_.size(); ++i) midpoints_[i] = (codes_[i] + codes_[i + 1]) / 2;
  midpoints_.back() = std::numeric_limits<float>::infinity();
  for (std::uint32_t upper = 0; upper < first_.size(); ++upper) {
    const auto first = std::bit_cast<float>(upper << 16), last = std::bit_cast<float>(upper << 16 | 0xFFFF);
    const float lowest = std::min(first, last);
    first_[upper] = static_cast<std::uint8_t>(std::lower_bound(midpoints_.begin(), midpoints_.end() - 1, lowest) -
                                              midpoints_.begin());
  }
  for (std::size_t i = 0; i < codes_.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(codes_[i]);
    halves_[0][i] = static_cast<std::uint16_t>(bits);
    halves_[1][i] = static_cast<std::uint16_t>(bits >> 16);
  }
  search_ = Block8Search(midpoints(), is_signed);
}

const Block8Map& signed_map() {
  static const Block8Map map(true);
  return map;
}

const Block8Map& unsigned_map() {
  static const Block8Map map(false);
  return map;
}

}  // namespace zero
