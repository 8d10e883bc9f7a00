#pragma once
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011), eight counters at a time.
// A counter-based generator: the numbers of any place are had without those before it, so a draw does not depend on how
// the work is cut over ranks and threads. Only integer arithmetic: the same on every platform.
#include <immintrin.h>

#include <array>
#include <cstdint>

namespace zero {

using U32x8 = std::uint32_t __attribute__((vector_size(32)));
using I32x8 = std::int32_t __attribute__((vector_size(32)));
using F32x8 = float __attribute__((vector_size(32)));

struct PhiloxKey {
  std::uint64_t key = 0;     // the seed
  std::uint64_t stream = 0;  // upper half of the counter: one stream per purpose or name
};

namespace detail {

inline U32x8 high_product(U32x8 a, U32x8 b) {
  const __m256i even = _mm256_mul_epu32((__m256i)a, (__m256i)b);
  const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64((__m256i)a, 32), _mm256_srli_epi64((__m256i)b, 32));
  return (U32x8)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);
}

inline U32x8 splat(std::uint32_t x) { return (U32x8)_mm256_set1_epi32(static_cast<int>(x)); }

}  // namespace detail

/// The four output words of eight blocks whose counters are given as four words of eight lanes.
inline std::array<U32x8, 4> philox(std::array<U32x8, 4> c, std::uint64_t key) {
  const U32x8 m0 = detail::splat(0xD2511F53u), m1 = detail::splat(0xCD9E8D57u);
  auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const U32x8 high0 = detail::high_product(c[0], m0), high1 = detail::high_product(c[2], m1);
    c = {high1 ^ c[1] ^ detail::splat(k0), c[2] * m1, high0 ^ c[3] ^ detail::splat(k1), c[0] * m0};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

/// Thirty-two numbers: the words of blocks [8 group, 8 group + 8) of the stream.
inline std::array<U32x8, 4> philox_group(const PhiloxKey& key, std::uint64_t group) {
  const std::uint64_t block = group * 8;  // its lowest three bits are free for the lane
  const U32x8 lanes = {0, 1, 2, 3, 4, 5, 6, 7};
  return philox(
      {detail::splat(static_cast<std::uint32_t>(block)) + lanes, detail::splat(static_cast<std::uint32_t>(block >> 32)),
       detail::splat(static_cast<std::uint32_t>(key.stream)),
       detail::splat(static_cast<std::uint32_t>(key.stream >> 32))},
      key.key);
}

}  // namespace zero
