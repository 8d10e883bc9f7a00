#pragma once
// ByteCount: formats and parses byte counts.
#include <cstdint>
#include <optional>
#include <string>

namespace zero {

/// "272.9 MiB", "9.38 GiB", "1.25 TiB"; at most ten characters below 1000 TiB.
std::string bytes_text(std::int64_t bytes);

/// Parses a byte count: "80GiB", "1.5 TiB", "80Gi", "512M", "80GB" or "4096B". K, M, G and T mean powers of 1024, or of
/// 1000 in "GB". Returns nothing for any other text, for a number without a unit, and for numbers outside (0, 2^62).
std::optional<std::int64_t> bytes_of_text(const std::string& words);

}  // namespace zero
