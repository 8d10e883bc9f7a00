#include "base/hash.h"

#include <array>
#include <cstring>

#include "base/simd/crc32c.h"

namespace zero {

namespace {

// Four interleaved streams keep four of the processor's three-cycle CRC steps in flight.
std::array<std::uint64_t, 4> streams_of(const std::byte* data, std::size_t bytes) {
  std::uint64_t a = 1, b = 2, c = 3, d = 4;
  for (std::size_t i = 0; i + 32 <= bytes; i += 32) {
    std::uint64_t word[4];
    std::memcpy(word, data + i, 32);
    a = crc32c(a, word[0]);
    b = crc32c(b, word[1]);
    c = crc32c(c, word[2]);
    d = crc32c(d, word[3]);
  }
  return {a, b, c, d};
}

// The finaliser of MurmurHash3 (Appleby). A CRC is linear, so equal differences would cancel without it.
std::uint64_t scrambled(std::uint64_t x) {
  x = (x ^ (x >> 33)) * 0xFF51AFD7ED558CCDu;
  x = (x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53u;
  return x ^ (x >> 33);
}

}  // namespace

std::uint64_t checksum(const std::byte* data, std::size_t bytes) {
  const auto [a, b, c, d] = streams_of(data, bytes);
  return scrambled(scrambled(a << 32 | b) + (c << 32 | d));
}

std::uint64_t linear_checksum(const std::byte* data, std::size_t bytes) {
  const auto [a, b, c, d] = streams_of(data, bytes);
  return (crc32c(a, c) << 32) | crc32c(b, d);
}

std::uint32_t crc32c_of(std::string_view bytes) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char byte : bytes) crc = crc32c_byte(crc, static_cast<std::uint8_t>(byte));
  return ~crc;
}

std::uint64_t checksum_of(std::string bytes) {
  bytes.resize((bytes.size() + 31) / 32 * 32);
  return checksum(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
}

}  // namespace zero
