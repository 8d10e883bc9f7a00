#pragma once
// Block8: 8-bit numbers with one scale per 256, for optimizer states. The codes and their spacing are those of dynamic
// tree quantization in bitsandbytes (Dettmers et al. 2022, "8-bit Optimizers via Block-wise Quantization").
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "offload/quantized/block8_search.h"

namespace zero {

inline constexpr std::int64_t block8 = 256;  // elements that share a scale

class Block8Map {
 public:
  /// A signed map has codes from -1 to 1. An unsigned one has codes from 0 to 1, twice as densely.
  explicit Block8Map(bool is_signed);

  /// In ascending order.
  const std::array<float, 256>& codes() const { return codes_; }
  /// The midpoints between adjacent codes: a number above midpoint i is nearer to code i + 1.
  std::span<const float, 255> midpoints() const { return std::span(midpoints_).first<255>(); }

  /// The code nearest to a number from -1 to 1; ties go to the lower code. Numbers whose upper 16 bits agree differ by
  /// at most a 128th. No two midpoints are that close, so one comparison suffices.
  std::uint8_t nearest(float value) const {
    const std::uint8_t code = first_[std::bit_cast<std::uint32_t>(value) >> 16];
    return static_cast<std::uint8_t>(code + (value > midpoints_[code]));
  }

  /// The vector form of nearest().
  const Block8Search& search() const { return search_; }

  /// The lower 16 bits of all codes, and then their upper 16 bits.
  const std::array<std::array<std::uint16_t, 256>, 2>& halves() const { return halves_; }

 private:
  std::array<float, 256> codes_{};
  std::array<float, 256> midpoints_{};  // none after the last code
  std::vector<std::uint8_t> first_;     // by a number's upper 16 bits: the code of the lowest number with those bits
  alignas(64) std::array<std::array<std::uint16_t, 256>, 2> halves_{};
  Block8Search search_;
};

/// The maps for the first and for the second moments.
const Block8Map& signed_map();
const Block8Map& unsigned_map();

}  // namespace zero
