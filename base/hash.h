#pragma once
// Hashes that detect changed bytes: checksums of states and files, and names of texts. They protect against damage and
// mistakes, not against attackers. Use base/fingerprint.h if collisions must not occur.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace zero {

/// Four interleaved CRC-32C streams mixed into 64 bits, as fast as one core reads memory. `bytes` is a multiple of 32.
std::uint64_t checksum(const std::byte* data, std::size_t bytes);

/// The same streams combined by CRC-32C once more, as in checkpoints of version 1. Common parts of two streams cancel
/// out, so a block of one repeated value may have the checksum of a block of another.
std::uint64_t linear_checksum(const std::byte* data, std::size_t bytes);

/// The checksum of bytes that are padded with zeros to a multiple of 32. Zeros at the end do not count.
std::uint64_t checksum_of(std::string bytes);

/// CRC-32C as files and protocols use it (RFC 3720, appendix B.4): that of "123456789" is 0xE3069283.
std::uint32_t crc32c_of(std::string_view bytes);

/// FNV-1a of 64 bits (Fowler, Noll, Vo; draft-eastlake-fnv). Pass the hash of the preceding text to continue it.
constexpr std::uint64_t fnv1a(std::string_view text, std::uint64_t hash = 0xCBF29CE484222325u) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

}  // namespace zero
