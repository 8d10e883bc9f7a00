#pragma once
// ByteCount: numbers of bytes as people write them.
#include <cstdint>
#include <optional>
#include <string>

namespace zero {

/// "272.9 MiB", "9.38 GiB", "1.25 TiB"; at most ten characters below 1000 TiB.
std::string bytes_text(std::int64_t bytes);

/// "80GiB", "1.5 TiB", "80Gi", "512M", "80GB" and "4096B" (K, M, G, T of 1024, or of 1000 with B alone: GB) as bytes;
/// nothing for other texts, a number without unit among them, and for numbers that are not above 0 or reach 2^62.
std::optional<std::int64_t> bytes_of_text(const std::string& words);

}  // namespace zero
