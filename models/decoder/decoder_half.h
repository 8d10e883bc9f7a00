#pragma once
// DecoderHalf: one half of a decoder block, which adds its output to the residual stream. A new kind of block needs a
// new half.
#include <vector>

#include "models/parallel/activations.h"
#include "models/unit.h"

namespace zero {

class DecoderHalf {
 public:
  virtual ~DecoderHalf() = default;

  /// Returns the residual stream x of this rank's tokens with the half's output added. The parameters must have their
  /// tensors.
  virtual TokenPart forward(const TokenPart& x, const ForwardContext& context) const = 0;
  /// The indices of the unit's parameters that the half reads, including adapters. Recomputation passes gradients only
  /// to these.
  virtual std::vector<int> parameters() const = 0;
  /// True if a pass with ForwardContext::recompute_attention runs this half again in backward.
  virtual bool is_attention() const { return false; }
  /// True if each token's output depends on that token alone. The half may then run on tiles of tokens.
  virtual bool is_tokenwise() const { return false; }
  /// See Unit::drop_tables().
  virtual void drop_tables() {}
};

}  // namespace zero
