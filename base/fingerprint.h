#pragma once
// Fingerprints of inputs, by which a cache detects changes. Does not include LibTorch.
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/core_share.h"

namespace zero {

/// SHA-256.
using Fingerprint = std::array<std::uint8_t, 32>;

Fingerprint fingerprint_of(std::string_view bytes);

/// Fingerprints a file's content: the SHA-256 of the SHA-256 hashes of all 4 MiB chunks, in order. Reads chunks on one
/// thread per core in `cores`. Throws InputError if the file cannot be read.
Fingerprint fingerprint_of_file(const std::string& path, const CoreSet& cores = {});

/// The first `digits` hexadecimal digits.
std::string hex(const Fingerprint& fingerprint, std::size_t digits = 64);

}  // namespace zero
