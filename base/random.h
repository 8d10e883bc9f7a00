#pragma once
// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014). It derives seeds from
// seeds, and its sequences are the same on every platform. base/philox.h draws random tensors.
#include <cstdint>

namespace zero {

/// The increment of SplitMix64's state: 2^64 divided by the golden ratio, made odd.
inline constexpr std::uint64_t golden_gamma = 0x9E3779B97F4A7C15u;

/// SplitMix64's output function. It is a bijection. Flipping any input bit flips about half of the output bits.
constexpr std::uint64_t mix_bits(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/// The first number of SplitMix64 from the state `seed`.
constexpr std::uint64_t splitmix64(std::uint64_t seed) { return mix_bits(seed + golden_gamma); }

/// Derives a seed for one purpose: output `number`, counted from 0, of SplitMix64 started at the state `seed`.
constexpr std::uint64_t mix_seed(std::uint64_t seed, std::uint64_t number) {
  return mix_bits(seed + (number + 1) * golden_gamma);
}

/// The generator.
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t state) : state_(state) {}

  std::uint64_t next() { return mix_bits(state_ += golden_gamma); }

  /// Uniform below `bound` <= 2^32, by multiplication with rejection (Lemire, "Fast random integer generation in an
  /// interval", ACM TOMACS 29, 2019).
  std::uint32_t below(std::uint64_t bound) {
    const std::uint64_t threshold = (std::uint64_t{1} << 32) % bound;
    for (;;) {
      const std::uint64_t product = (next() >> 32) * bound;
      if ((product & 0xFFFFFFFFu) >= threshold) return static_cast<std::uint32_t>(product >> 32);
    }
  }

 private:
  std::uint64_t state_;
};

}  // namespace zero
