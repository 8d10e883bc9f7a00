#pragma once
// Rotary position embedding (Su et al. 2021) in the convention of transformers: dimension i of a head rotates with
// dimension i + head_dim/2. Frequencies, angles and the scalings of models/rope_scaling.h are those of transformers,
// fp32 as there (fp64 when computing in fp64).
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "models/rope_scaling.h"

namespace zero {

class Rotary {
 public:
  /// `turned`: the number of the head's dimensions that rotate. With fewer than all, dimension i < turned/2 still
  /// rotates with i + head_dim/2, and the others stay unchanged. heads_in_order() of models/nn/heads.h brings a head
  /// into this order.
  Rotary(std::int64_t head_dim, double theta, std::optional<RopeScaling> scaling,
         std::optional<std::int64_t> turned = {});

  /// [head_dim / 2] in fp32 or fp64: radians per position, in a document of `length` tokens ("longrope" needs it).
  at::Tensor frequencies(at::ScalarType precise, std::int64_t length = 1) const;

  struct Table {
    at::Tensor cos;  // [rows, head_dim / 2], contiguous
    at::Tensor sin;
  };
  /// Cosines and sines of at least the positions 0 .. length-1, in fp32 (fp64 in fp64). Kept between calls, so not
  /// thread-safe. Under "longrope", for a length beyond the old context, rows for each position of the old context come
  /// first, by the short factors. Rows for each position by the long ones follow.
  Table table(std::int64_t length, at::ScalarType type, at::Device device);
  /// The row of table(length) for each token of x [B, T, ...]. positions [B, T] int64 (undefined: 0 .. T-1) are all
  /// below `length`. Under "longrope" the length of each document, by the last of its positions, decides between short
  /// and long factors. documents [B, T] int32 as in Batch (undefined: each row is one). An undefined result means: as
  /// positions.
  at::Tensor rows(const at::Tensor& x, const at::Tensor& positions, const at::Tensor& documents,
                  std::int64_t length) const;
  /// Drops the kept table.
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

/// Rotates x [B, T, heads, head_dim] by rows [B, T] int64 of the table (undefined: 0..T-1), out of place, through
/// autograd.
at::Tensor rotate(const at::Tensor& x, const Rotary::Table& table, const at::Tensor& rows);

}  // namespace zero
