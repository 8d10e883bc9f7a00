#include "base/hash.h"

#include <cstring>

#include "base/simd/crc32c.h"

namespace zero {

std::uint64_t checksum(const std::byte* data, std::size_t bytes) {
  // Interleaved words keep four of the processor's three-cycle CRC steps going at a time.
  std::uint64_t a = 1, b = 2, c = 3, d = 4;
  for (std::size_t i = 0; i + 32 <= bytes; i += 32) {
    std::uint64_t word[4];
    std::memcpy(word, data + i, 32);
    a = crc32c(a, word[0]);
    b = crc32c(b, word[1]);
    c = crc32c(c, word[2]);
    d = crc32c(d, word[3]);
  }
  return (crc32c(a, c) << 32) | crc32c(b, d);
}

std::uint64_t checksum_of(std::string bytes) {
  bytes.resize((bytes.size() + 31) / 32 * 32);
  return checksum(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
}

}  // namespace zero
