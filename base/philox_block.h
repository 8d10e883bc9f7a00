#pragma once
// Computes one block of Philox4x32-10 (base/philox.h) at a time, for GPU threads.
#include <cstdint>

namespace zero {

struct PhiloxBlock {
  std::uint32_t word[4];
};

/// The four words of a block of the stream.
constexpr PhiloxBlock philox_block(std::uint64_t key, std::uint64_t stream, std::uint64_t block) {
  std::uint32_t c[4] = {std::uint32_t(block), std::uint32_t(block >> 32), std::uint32_t(stream),
                        std::uint32_t(stream >> 32)};
  std::uint32_t k0 = std::uint32_t(key), k1 = std::uint32_t(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t(c[0]) * 0xD2511F53u, second = std::uint64_t(c[2]) * 0xCD9E8D57u;
    c[0] = std::uint32_t(second >> 32) ^ c[1] ^ k0;
    c[1] = std::uint32_t(second);
    c[2] = std::uint32_t(first >> 32) ^ c[3] ^ k1;
    c[3] = std::uint32_t(first);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c[0], c[1], c[2], c[3]}};
}

}  // namespace zero
