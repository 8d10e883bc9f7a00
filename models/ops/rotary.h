#pragma once
// Rotary position embedding (Su et al. 2021) in the convention of transformers: dimension i of a head rotates with
// dimension i + head_dim/2. Frequencies, angles and the scalings of models/rope_scaling.h are those of transformers,
// also in fp32 (fp64 for fp64).
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "models/rope_scaling.h"

namespace zero {

class Rotary {
 public:
  /// `turned` is the number of a head's dimensions that rotate. If that is fewer than all, dimension i < turned/2 still
  /// rotates with i + head_dim/2, and the others do not change. heads_in_order() in models/nn/heads.h puts a head into
  /// this order.
  Rotary(std::int64_t head_dim, double theta, std::optional<RopeScaling> scaling,
         std::optional<std::int64_t> turned = {});

  /// The radians per position, [head_dim / 2] in fp32 or fp64. `length` is the document's number of tokens, which only
  /// "longrope" uses.
  at::Tensor frequencies(at::ScalarType precise, std::int64_t length = 1) const;

  struct Table {
    at::Tensor cos;  // [rows, head_dim / 2], contiguous
    at::Tensor sin;
  };
  /// Cosines and sines for at least the positions 0 .. length-1, in fp32 (fp64 for fp64). The table is kept between
  /// calls, so this is not thread-safe. If "longrope" is used and `length` exceeds the old context, the table begins
  /// with a row of the short factors per position of that context. Rows of the long factors for all positions follow.
  Table table(std::int64_t length, at::ScalarType type, at::Device device);
  /// The row of table(length) for each token of x [B, T, ...]. `positions` is [B, T] int64 (undefined: 0 .. T-1), all
  /// below `length`. `documents` is [B, T] int32 as in Batch (undefined: each row is one document). Under "longrope", a
  /// document's last position decides between short and long factors. If the result is undefined, rows equal positions.
  at::Tensor rows(const at::Tensor& x, const at::Tensor& positions, const at::Tensor& documents,
                  std::int64_t length) const;
  /// Frees the table that is kept.
  void drop() { kept_ = {}, kept_length_ = 0; }

 private:
  Table angles(const at::Tensor& frequencies, std::int64_t positions) const;
  at::Tensor amplitudes(at::ScalarType precise) const;

  std::int64_t head_dim_, turned_;
  double theta_;
  std::optional<RopeScaling> scaling_;
  Table kept_;
  std::int64_t kept_length_ = 0;
};

/// Rotates x [B, T, heads, head_dim] by rows [B, T] int64 of the table (undefined: 0..T-1). Works out of place and
/// supports autograd.
at::Tensor rotate(const at::Tensor& x, const Rotary::Table& table, const at::Tensor& rows);

}  // namespace zero
