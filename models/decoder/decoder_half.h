#pragma once
// DecoderHalf: one half of a decoder block, which adds its output to the residual stream. A kind of block is a new
// half.
#include <vector>

#include "models/parallel/activations.h"
#include "models/unit.h"

namespace zero {

class DecoderHalf {
 public:
  virtual ~DecoderHalf() = default;

  /// The residual stream of this rank's tokens, and the same with the half's output added. Parameters have their
  /// tensors.
  virtual TokenPart forward(const TokenPart& x, const ForwardContext& context) const = 0;
  /// Indices of the unit's parameters that it reads, adapters included. Recomputation hands gradients to these alone.
  virtual std::vector<int> parameters() const = 0;
  /// True if a pass with ForwardContext::recompute_attention runs it again in backward.
  virtual bool is_attention() const { return false; }
  /// True if each token's output follows from that token alone: it may then run by tiles of tokens.
  virtual bool is_tokenwise() const { return false; }
  /// As Unit::drop_tables().
  virtual void drop_tables() {}
};

}  // namespace zero
