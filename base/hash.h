#pragma once
// Hashes that tell whether bytes are what they were: checksums of states and files, and names of texts. Against damage
// and mistakes, not against people; base/fingerprint.h is for what must not collide.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace zero {

/// Four interleaved CRC-32C streams mixed into 64 bits, as fast as one core reads memory. `bytes` is a multiple of 32.
std::uint64_t checksum(const std::byte* data, std::size_t bytes);

/// The same streams combined by CRC-32C once more, as checkpoints of version 1 have it: what two of the streams have in
/// common cancels out, so that a block of one value is no other than a block of another one.
std::uint64_t linear_checksum(const std::byte* data, std::size_t bytes);

/// The checksum of bytes that are filled up with zeros to a multiple of 32: zeros at the end do not count.
std::uint64_t checksum_of(std::string bytes);

/// FNV-1a of 64 bits (Fowler, Noll, Vo; draft-eastlake-fnv). A text goes on from the hash of what stands before it.
constexpr std::uint64_t fnv1a(std::string_view text, std::uint64_t hash = 0xCBF29CE484222325u) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

}  // namespace zero
