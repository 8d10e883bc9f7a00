#pragma once
// DropoutPlace: a place in a model where training drops elements. Its draws are keyed by run, step, place, sequence,
// position and column.
#include <string_view>

#include "models/nn/drop.h"
#include "models/unit.h"

namespace zero {

/// The dropout of a pass; its share is 0 outside training. `seed` is that of the place. Rows begin with those of the
/// batch's first sequence.
Dropout dropout_of(const ForwardContext& context, double share, std::uint64_t seed);

class DropoutPlace {
 public:
  /// `name` differs between all places of a model.
  DropoutPlace(double share, std::string_view name);

  bool drops(const ForwardContext& context) const { return share_ > 0 && context.training; }
  /// Drops elements of this rank's tokens, x [B, T, width] or [1, own, width], or of a tile of them.
  at::Tensor drop(const at::Tensor& x, const ForwardContext& context) const;
  /// The dropout of attention. `first_head` is the number of the rank's first query head in the whole model.
  HeadDropout of_heads(const ForwardContext& context, std::int64_t first_head) const;

 private:
  double share_;
  std::uint64_t seed_;
};

}  // namespace zero
