#pragma once
// Rotary position embedding (Su et al. 2021) in the convention of transformers: dimension i of a head turns with
// dimension i + head_dim/2. Frequencies, angles and the scalings of models/rope_scaling.h are those of transformers, fp32
// as there (fp64 when computing in fp64).
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "models/rope_scaling.h"

namespace zero {

class Rotary {
 public:
  /// `turned`: how many of the head's dimensions turn; with fewer than all, dimension i < turned/2 turns with i +
  /// head_dim/2 too, and the others stand still (heads_in_order() of models/nn/heads.h brings a head into this order).
  Rotary(std::int64_t head_dim, double theta, std::optional<RopeScaling> scaling,
         std::optional<std::int64_t> turned = {});

  /// [head_dim / 2] in fp32 or fp64: radians per position, in passes over `length` positions ("longrope" asks).
  at::Tensor frequencies(at::ScalarType precise, std::int64_t length = 1) const;

  struct Table {
    at::Tensor cos;  // [positions, head_dim / 2], contiguous
    at::Tensor sin;
  };
  /// Cosines and sines of at least the positions 0 .. length-1, in fp32 (fp64 in fp64). Kept between calls, so not for
  /// several threads at once. Under "longrope" the table is that of passes of this length.
  Table table(std::int64_t length, at::ScalarType type, at::Device device);
  /// Whether frequencies depend on the length of the pass.
  bool depends_on_length() const { return scaling_ && std::holds_alternative<LongRopeScaling>(*scaling_); }
  /// Gives up what is kept.
  void drop() { kept_ = {}; }

 private:
  bool is_long(std::int64_t length) const;
  at::Tensor amplitudes(at::ScalarType precise) const;

  std::int64_t head_dim_, turned_;
  double theta_;
  std::optional<RopeScaling> scaling_;
  Table kept_;
  bool kept_long_ = false;  // of a pass beyond the old context of "longrope"
};

/// Turns x [B, T, heads, head_dim] by positions [B, T] int64 (undefined: 0..T-1), out of place, through autograd.
at::Tensor rotate(const at::Tensor& x, const Rotary::Table& table, const at::Tensor& positions);

}  // namespace zero
