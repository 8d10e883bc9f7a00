#pragma once
// The cross-entropy of each single token, for losses that weight or sum tokens in other ways.
#include <ATen/core/Tensor.h>

#include "models/parallel/vocabulary_slice.h"

namespace zero {

/// Returns -log p(target) of each row, [n] in fp32 (fp64 for fp64), or 0 if the target is negative. `logits` is [n,
/// vocabulary] and contiguous, `targets` is [n] int64. If `scale` [] is given, logits become scale * weight * d loss /
/// d logits, with one weight [n] per row, or 1 if `weights` is undefined. A target outside the vocabulary throws Error;
/// on a GPU its loss is NaN instead.
///
/// If the vocabulary is divided, `logits` covers only this rank's part of it, and targets are ids of the full one.
/// Ranks exchange two numbers per row. Results are for the full vocabulary, gradients for this rank's logits. The call
/// is then collective over vocabulary.ranks.
at::Tensor token_losses(at::Tensor& logits, const at::Tensor& targets, const at::Tensor* scale,
                        const at::Tensor& weights, const VocabularySlice& vocabulary = {});

}  // namespace zero
