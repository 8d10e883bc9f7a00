#pragma once
// Packing: packs documents into few rows of a given capacity without splitting any document. No LibTorch.
#include <cstdint>
#include <vector>

namespace zero {

/// Best-fit decreasing, like TRL's "bfd": places the longest documents first, each into the fullest row with enough
/// space. Ties are broken by document number. Documents in a row are sorted by number, and rows by their first
/// document.
std::vector<std::vector<std::int64_t>> pack(const std::vector<std::int64_t>& lengths, std::int64_t capacity);

}  // namespace zero
