#pragma once
// The cross-entropy of each token by itself, for losses that weigh tokens or add them up in other ways.
#include <ATen/core/Tensor.h>

#include "models/parallel/vocabulary_slice.h"

namespace zero {

/// -log p(target) of each row, [n] in fp32 (fp64 in fp64), 0 where a target is negative. logits [n, vocabulary]
/// contiguous, targets [n] int64. With `scale`, [], logits become scale * weight * d loss / d logits, with a weight
/// [n] for each row, or 1 if `weights` is undefined. Throws Error if a target is not below the vocabulary's size; on a
/// GPU its loss is NaN.
///
/// If the vocabulary is divided, logits [n, own vocabulary] are those of this rank's tokens, and targets are tokens of
/// the full one. Ranks exchange two numbers a row. The results are those of the full vocabulary, and the gradients
/// those of the own logits. Collective over vocabulary.ranks then.
at::Tensor token_losses(at::Tensor& logits, const at::Tensor& targets, const at::Tensor* scale,
                        const at::Tensor& weights, const VocabularySlice& vocabulary = {});

}  // namespace zero
