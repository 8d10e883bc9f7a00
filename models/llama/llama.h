#pragma once
// The Llama decoder (Touvron et al. 2023) as a chain of units, with the parameter names of transformers'
// LlamaForCausalLM.
#include "models/model.h"

namespace zero {

/// Builds the decoder's chain; allocates no weights. Gradient flow and dtype are decided by whoever holds the
/// parameters.
Model make_llama(const ModelConfig& config);

/// The head's other output: logits [B, T, vocabulary] of the last unit's input x [B, T, hidden], in fp32 (fp64 in
/// fp64).
at::Tensor logits_of(Unit& head, const at::Tensor& x);

}  // namespace zero
