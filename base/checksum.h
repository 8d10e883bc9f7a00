#pragma once
// A 64-bit checksum of state on its way through the disk: four CRC-32C streams, as fast as one core reads memory.
#include <cstddef>
#include <cstdint>

namespace zero {

/// `bytes` is a multiple of 32.
std::uint64_t checksum(const std::byte* data, std::size_t bytes);

}  // namespace zero
