#pragma once
// Fingerprints of inputs. A cache uses them to detect changes. No LibTorch.
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

/// Fingerprints a file's content: SHA-256 of the SHA-256 of all chunks of 4 MiB, in order. Reads chunks on one thread
/// for each of `cores`. Throws InputError if the file cannot be read.
Fingerprint fingerprint_of_file(const std::string& path, const CoreSet& cores = {});

/// The first `digits` hexadecimal digits.
std::string hex(const Fingerprint& fingerprint, std::size_t digits = 64);

}  // namespace zero
