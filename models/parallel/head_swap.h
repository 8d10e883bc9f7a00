#pragma once
// HeadSwap: the all-to-all around attention on a context axis (DeepSpeed-Ulysses, Jacobs et al. 2023). Before it a rank
// has all heads of its part of the tokens, behind it some heads of all tokens, so that attention itself stays as it is.
#include <ATen/core/Tensor.h>

#include <vector>

#include "models/parallel/activations.h"
#include "models/tensor_spec.h"

namespace zero {

/// The columns that each rank of the context axis takes, by rank: windows of the width, one after another. Ranks may
/// take different numbers of columns, several may take the same ones, and one may take a column twice.
using RankColumns = std::vector<std::vector<TensorCut::Window>>;

/// [B, T, own columns] of x [1, part, width]. Backward runs the reverse, and adds the gradients of columns that were
/// taken several times.
at::Tensor swap_to_columns(const WidthPart& x, const TokenSplit& split, const RankColumns& columns);

/// The reverse: [1, part, width] of x [B, T, own columns]. No column is taken twice.
WidthPart swap_to_tokens(const at::Tensor& x, const TokenSplit& split, const RankColumns& columns);

}  // namespace zero
