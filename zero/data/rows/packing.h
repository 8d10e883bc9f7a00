#pragma once
// Packing: documents of given lengths into rows of a given capacity, few rows and no document split. No LibTorch.
#include <cstdint>
#include <vector>

namespace zero {

/// Best-fit decreasing: the longest documents first, each into the fullest row that still has room (as TRL's "bfd").
/// Equal lengths go by number. Rows come in the order of their first document, and so do the documents of a row.
std::vector<std::vector<std::int64_t>> pack(const std::vector<std::int64_t>& lengths, std::int64_t capacity);

}  // namespace zero
