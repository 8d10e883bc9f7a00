#pragma once
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011), eight counters at a time. The
// generator is counter-based: any position can be drawn without the earlier ones. A draw therefore does not depend on
// how work is divided over ranks and threads. The generator uses only integer arithmetic, so its output is the same on
// every platform.
#include "base/simd/targets.h"

#include <hwy/highway.h>

#include <array>
#include <cstdint>
#include <cstring>

namespace zero {

using U32x8 = std::uint32_t __attribute__((vector_size(32)));
using I32x8 = std::int32_t __attribute__((vector_size(32)));
using F32x8 = float __attribute__((vector_size(32)));

struct PhiloxKey {
  std::uint64_t key = 0;     // the seed
  std::uint64_t stream = 0;  // upper half of the counter: one stream per purpose or name
};

namespace detail {

inline U32x8 splat(std::uint32_t x) { return U32x8{} + x; }

/// The upper 32 bits of each product.
inline U32x8 high_product(U32x8 a, std::uint32_t b) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::CappedTag<std::uint32_t, 8> words;
  const hn::RepartitionToWide<decltype(words)> pairs;
  const auto factor = hn::Set(words, b);
  std::uint32_t all[8];
  std::memcpy(all, &a, sizeof all);
  for (std::size_t i = 0; i < 8; i += hn::MaxLanes(words)) {
    const auto x = hn::LoadU(words, all + i);
    const auto odd_lanes = hn::BitCast(words, hn::ShiftRight<32>(hn::BitCast(pairs, x)));
    const auto even = hn::BitCast(words, hn::ShiftRight<32>(hn::MulEven(x, factor)));
    const auto odd = hn::BitCast(words, hn::MulEven(odd_lanes, factor));
    hn::StoreU(hn::OddEven(odd, even), words, all + i);
  }
  U32x8 high;
  std::memcpy(&high, all, sizeof high);
  return high;
}

}  // namespace detail

/// The four output words of eight blocks. `c` holds the blocks' counters, as four words of eight lanes.
inline std::array<U32x8, 4> philox(std::array<U32x8, 4> c, std::uint64_t key) {
  constexpr std::uint32_t m0 = 0xD2511F53u, m1 = 0xCD9E8D57u;
  auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const U32x8 high0 = detail::high_product(c[0], m0), high1 = detail::high_product(c[2], m1);
    c = {high1 ^ c[1] ^ detail::splat(k0), c[2] * m1, high0 ^ c[3] ^ detail::splat(k1), c[0] * m0};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

/// The words of blocks [8 group, 8 group + 8) of the stream, 32 numbers in all.
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
