#pragma once
// Hashes that tell whether bytes are what they were: checksums of states and files, and names of texts. Against damage
// and mistakes, not against people; base/fingerprint.h is for what must not collide.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace zero {

/// Four interleaved CRC-32C streams in 64 bits, as fast as one core reads memory. `bytes` is a multiple of 32.
std::uint64_t checksum(const std::byte* data, std::size_t bytes);

/// The checksum of bytes that are filled up with zeros to a multiple of 32: zeros at the end do not count.
std::uint64_t checksum_of(std::string bytes);

/// FNV-1a of 64 bits (Fowler, Noll, Vo; draft-eastlake-fnv). A text goes on from the hash of what stands before it.
constexpr std::uint64_t fnv1a(std::string_view text, std::uint64_t hash = 0xCBF29CE484222325u) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

}  // namespace zero
