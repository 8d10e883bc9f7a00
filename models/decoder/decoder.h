#pragma once
// A causal decoder as a chain of units: embedding, blocks, head. The ModelConfig selects norms, projections and
// positions. The family names them.
#include "models/decoder/decoder_names.h"
#include "models/model.h"

namespace zero {

/// Builds the chain and allocates no weights. The owner of the parameters decides gradient flow and dtype. On a tensor
/// axis of several ranks, the chain holds only the slices of the rank at `place`. Matrices of blocks are split by heads
/// or inner columns, embedding and head by vocabulary. The number of heads must allow that (why_not_cut).
Model make_decoder(const ModelConfig& config, const DecoderNames& names, SlicePlace place = {});

/// Returns why this many ranks cannot divide the model along the tensor axis; empty if they can.
std::string why_not_cut(const ModelConfig& config, int ranks);

/// Does the same for the ranks of a context axis, which share the heads of each tensor rank.
std::string why_not_swapped(const ModelConfig& config, int tensor_ranks, int ranks);

/// Computes logits [B, T, vocabulary] from the head's input x [B, T, hidden], in fp32 (or fp64 for fp64 weights).
/// `context` is the context of the pass. Its ranks may divide the vocabulary.
at::Tensor logits_of(Unit& head, const at::Tensor& x, const ForwardContext& context);

/// Computes -log p(target) of each token, [B, T] in fp32 (or fp64 for fp64 weights), without gradients. Tokens that are
/// not trained get 0. This gives a reference model's log-probabilities.
at::Tensor token_losses_of(Unit& head, const at::Tensor& x, const ForwardContext& context);

}  // namespace zero
