#pragma once
// Shared by both implementations of reductions: the types of a sum, and how a vector is split into one piece per rank.
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "comm/communicator.h"

namespace zero {

/// The types of a reduction. Sums follow sum_tree().
struct ReduceTypes {
  at::ScalarType in = at::kFloat;
  at::ScalarType out = at::kFloat;
  at::ScalarType sum = at::kFloat;
  bool accumulate = false;

  static ReduceTypes of(const at::Tensor& in, const at::Tensor& out, const ReduceOptions& options) {
    return {in.scalar_type(), out.scalar_type(), options.sum_type, options.accumulate};
  }
};

/// The range of elements of one rank's piece.
struct Piece {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t numel() const { return end - begin; }
};
inline Piece piece_of(std::int64_t numel, int pieces, int index) {
  const std::int64_t each = ((numel + pieces - 1) / pieces + 15) / 16 * 16;
  const auto bound = [&](std::int64_t i) { return i * each < numel ? i * each : numel; };
  return {bound(index), bound(index + 1)};
}

}  // namespace zero
