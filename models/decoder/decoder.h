#pragma once
// A causal decoder as a chain of units: embedding, blocks, head. Its ModelConfig selects norms, projections and
// positions, and its family names them.
#include "models/decoder/decoder_names.h"
#include "models/model.h"

namespace zero {

/// Builds the chain and allocates no weights. The owner of the parameters decides gradient flow and dtype. On a tensor
/// axis of several ranks the chain's matrices are the slices of the rank at `place`: those of blocks by heads and by
/// inner columns, embedding and head by tokens of the vocabulary. The heads must allow it (why_not_cut).
Model make_decoder(const ModelConfig& config, const DecoderNames& names, SlicePlace place = {});

/// The reason why so many ranks cannot divide the model along the tensor axis, with the numbers that can. Empty: they
/// can.
std::string why_not_cut(const ModelConfig& config, int ranks);

/// The same for ranks of a context axis, which share the heads of each rank of the tensor axis.
std::string why_not_swapped(const ModelConfig& config, int tensor_ranks, int ranks);

/// The head's other output: logits [B, T, vocabulary] of the last unit's input x [B, T, hidden], in fp32 (fp64 in
/// fp64). `context`: that of the pass, whose ranks may divide the vocabulary.
at::Tensor logits_of(Unit& head, const at::Tensor& x, const ForwardContext& context);

/// Another one: -log p(target) of each token, [B, T] in fp32 (fp64 in fp64), 0 where none is trained, without gradient.
/// A reference model's log-probabilities come from here.
at::Tensor token_losses_of(Unit& head, const at::Tensor& x, const ForwardContext& context);

}  // namespace zero
