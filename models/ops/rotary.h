#pragma once
// Rotary position embedding (Su et al. 2021) in the convention of transformers: dimension i of a head turns with
// dimension i + head_dim/2. Frequencies and angles are fp32 as there (fp64 when computing in fp64); "llama3" scaling as
// there too.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "models/model_config.h"

namespace zero {

class Rotary {
 public:
  Rotary(std::int64_t head_dim, double theta, std::optional<Llama3Scaling> scaling);

  /// [head_dim / 2] in fp32 or fp64: radians per position.
  at::Tensor frequencies(at::ScalarType precise) const;

  struct Table {
    at::Tensor cos;  // [positions, head_dim / 2], contiguous
    at::Tensor sin;
  };
  /// Cosines and sines of at least the positions 0 .. length-1, in fp32 (fp64 in fp64). Kept between calls, so not for
  /// several threads at once.
  Table table(std::int64_t length, at::ScalarType type, at::Device device);
  /// Gives up what is kept.
  void drop() { kept_ = {}; }

 private:
  std::int64_t head_dim_;
  double theta_;
  std::optional<Llama3Scaling> scaling_;
  Table kept_;
};

/// Turns x [B, T, heads, head_dim] by positions [B, T] int64 (undefined: 0..T-1), out of place, through autograd.
at::Tensor rotate(const at::Tensor& x, const Rotary::Table& table, const at::Tensor& positions);

}  // namespace zero
