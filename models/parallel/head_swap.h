#pragma once
// HeadSwap: the all-to-all around attention on a context axis (DeepSpeed-Ulysses, Jacobs et al. 2023). Before the
// exchange, a rank has all heads of some tokens. Afterwards it has some heads of all tokens. Attention itself therefore
// does not change.
#include <ATen/core/Tensor.h>

#include <vector>

#include "models/parallel/activations.h"
#include "models/tensor_spec.h"

namespace zero {

/// The columns that each rank of the context axis receives, by rank: windows of the width, one after another. Ranks may
/// receive different numbers of columns. Several ranks may receive the same column, and one rank may receive a column
/// twice.
using RankColumns = std::vector<std::vector<TensorCut::Window>>;

/// Maps x [1, part, width] to this rank's columns [B, T, own columns]. Backward does the reverse, and adds the
/// gradients of columns that were sent several times.
at::Tensor swap_to_columns(const WidthPart& x, const TokenSplit& split, const RankColumns& columns);

/// Does the reverse: maps x [B, T, own columns] to [1, part, width]. Every column must belong to exactly one rank.
WidthPart swap_to_tokens(const at::Tensor& x, const TokenSplit& split, const RankColumns& columns);

}  // namespace zero
