#pragma once
// The gradient of an embedding's table.
#include <ATen/core/Tensor.h>

namespace zero {

/// Sums dy [tokens, hidden] over the tokens of each id, and returns [vocabulary, hidden]. `ids` is [tokens]. Sums are
/// in fp32 (fp64 for fp64), always in the same order, and rounded once.
at::Tensor embedding_backward(const at::Tensor& dy, const at::Tensor& ids, std::int64_t vocabulary);

}  // namespace zero
