#pragma once
// A causal decoder as a chain of units: embedding, blocks, head. Its ModelConfig selects norms, projections and
// positions, and its family names them.
#include "models/decoder/decoder_names.h"
#include "models/model.h"

namespace zero {

/// Builds the chain and allocates no weights. The owner of the parameters decides gradient flow and dtype.
Model make_decoder(const ModelConfig& config, const DecoderNames& names);

/// The head's other output: logits [B, T, vocabulary] of the last unit's input x [B, T, hidden], in fp32 (fp64 in
/// fp64).
at::Tensor logits_of(Unit& head, const at::Tensor& x);

/// Another one: -log p(target) of each token, [B, T] in fp32 (fp64 in fp64), 0 where none is trained, without gradient.
/// A reference model's log-probabilities come from here.
at::Tensor token_losses_of(Unit& head, const at::Tensor& x, const ForwardContext& context);

}  // namespace zero
