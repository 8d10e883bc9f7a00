#pragma once
// Fingerprints of inputs, by which a cache knows that it still belongs to them. No LibTorch.
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace zero {

/// SHA-256.
using Fingerprint = std::array<std::uint8_t, 32>;

Fingerprint fingerprint_of(std::string_view bytes);

/// Of a file's content. InputError when it cannot be read.
Fingerprint fingerprint_of_file(const std::string& path);

/// The first `digits` hexadecimal digits.
std::string hex(const Fingerprint& fingerprint, std::size_t digits = 64);

}  // namespace zero
