#pragma once
// Hashes that detect changed bytes: checksums of states and files, and hashes of texts. They protect against damage and
// mistakes, but not against attackers. Use base/fingerprint.h if collisions must not occur.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace zero {

/// Four interleaved CRC-32C streams mixed into 64 bits, as fast as one core reads memory. `bytes` is a multiple of 32.
std::uint64_t checksum(const std::byte* data, std::size_t bytes);

/// The same four streams combined by one more CRC-32C, as in checkpoints of version 1. Equal contents of two streams
/// cancel out, so blocks that repeat different values may have the same checksum.
std::uint64_t linear_checksum(const std::byte* data, std::size_t bytes);

/// The checksum of the bytes, padded with zeros to a multiple of 32. Trailing zeros within the padding do not change
/// it.
std::uint64_t checksum_of(std::string bytes);

/// CRC-32C as files and protocols use it (RFC 3720, appendix B.4). The CRC-32C of "123456789" is 0xE3069283.
std::uint32_t crc32c_of(std::string_view bytes);

/// 64-bit FNV-1a (Fowler, Noll, Vo; draft-eastlake-fnv). To continue a hash, pass the hash of the preceding text.
constexpr std::uint64_t fnv1a(std::string_view text, std::uint64_t hash = 0xCBF29CE484222325u) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

}  // namespace zero
