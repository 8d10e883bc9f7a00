#pragma once
// A causal decoder as a chain of units: embedding, blocks, head. Which norms, projections and positions it has is told by
// its ModelConfig, what they are called by its family.
#include "models/decoder/decoder_names.h"
#include "models/model.h"

namespace zero {

/// Builds the chain; allocates no weights. Gradient flow and dtype are decided by whoever holds the parameters.
Model make_decoder(const ModelConfig& config, const DecoderNames& names);

/// The head's other output: logits [B, T, vocabulary] of the last unit's input x [B, T, hidden], in fp32 (fp64 in
/// fp64).
at::Tensor logits_of(Unit& head, const at::Tensor& x);

}  // namespace zero
