#pragma once
// TokenSplit: the tokens of a micro-batch that each rank of the tensor axis holds between products (sequence
// parallelism, Korthikanti et al. 2022). The B T tokens, in the order of the batch, are dealt out in equal numbers. The
// last ranks get rows of zeros where B T does not divide.
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "comm/communicator.h"
#include "models/unit.h"

namespace zero {

class TokenSplit {
 public:
  /// One rank holds all tokens.
  TokenSplit() = default;
  /// Over context.tensor_ranks, for context.batch.
  explicit TokenSplit(const ForwardContext& context);

  bool divides() const { return ranks_ != nullptr; }
  /// Rows of this rank, padding included.
  std::int64_t own() const { return own_; }
  std::int64_t batch() const { return batch_; }
  std::int64_t length() const { return length_; }
  /// Only if it divides.
  Communicator& ranks() const { return *ranks_; }

  // All of these need a split that divides, record no gradients, and are collective over its ranks unless they say
  // otherwise.

  /// [B T, width], of all ranks' own rows [own, width].
  at::Tensor gather(const at::Tensor& own) const;
  /// Own rows [own, width] of the sum over ranks of [B T, width]. Sums are held in fp32 (fp64 in fp64).
  at::Tensor sum(const at::Tensor& partial) const;
  /// Own rows [own, ...] of [B T, ...], which all ranks have. Not collective.
  at::Tensor own_rows(const at::Tensor& all) const;

 private:
  Communicator* ranks_ = nullptr;
  std::int64_t batch_ = 0, length_ = 0, own_ = 0;
};

/// tensor <- the sum over ranks, held in fp32 (fp64 in fp64) and rounded once.
void sum_over(Communicator& ranks, const at::Tensor& tensor);

}  // namespace zero
