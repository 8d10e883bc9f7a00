#pragma once
// Packing: puts documents into few rows of a given capacity without splitting any. No LibTorch.
#include <cstdint>
#include <vector>

namespace zero {

/// Best-fit decreasing, as TRL's "bfd": the longest documents first, each into the fullest row with room. Ties go by
/// document number. Documents in a row are sorted by number, and rows by their first document.
std::vector<std::vector<std::int64_t>> pack(const std::vector<std::int64_t>& lengths, std::int64_t capacity);

}  // namespace zero
