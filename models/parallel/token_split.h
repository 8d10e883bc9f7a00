#pragma once
// TokenSplit: the tokens of a micro-batch that this rank holds between products. The B T tokens, in the order of the
// batch, are dealt out twice. Each rank of the context axis has one part of them (DeepSpeed-Ulysses, Jacobs et al.
// 2023), and the ranks of the tensor axis divide that part (sequence parallelism, Korthikanti et al. 2022). All have
// equal numbers: zeros stand where they do not divide.
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "comm/communicator.h"
#include "models/unit.h"

namespace zero {

class TokenSplit {
 public:
  /// One rank holds all tokens.
  TokenSplit() = default;
  /// Over context.context_ranks and context.tensor_ranks, for context.batch.
  explicit TokenSplit(const ForwardContext& context);

  /// True if this rank's tokens are not simply all of the batch.
  bool any() const { return context_ || tensor_; }
  /// True if ranks of the tensor axis divide the part of the context axis.
  bool divides() const { return tensor_ != nullptr; }
  bool has_parts() const { return context_ != nullptr; }
  /// The ranks of the axes; only if they divide, or if there are parts.
  Communicator& ranks() const { return *tensor_; }
  Communicator& context() const { return *context_; }

  /// Sizes of the whole micro-batch.
  std::int64_t batch() const { return batch_; }
  std::int64_t length() const { return length_; }
  std::int64_t tokens() const { return batch_ * length_; }
  /// Rows of the part, and of this rank, padding included. Without parts the part is all tokens.
  std::int64_t part() const { return part_; }
  std::int64_t own() const { return own_; }
  /// The first token of the part among all.
  std::int64_t first() const { return first_; }
  /// The part's rows in a batch's shape: [B, T, width] if it is all tokens, else [1, part, width].
  std::vector<std::int64_t> part_shape(std::int64_t width) const;

  /// Rows of the part [part, ...], and own rows [own, ...], of all tokens' [B T, ...], which every rank has.
  at::Tensor part_rows(const at::Tensor& all) const;
  at::Tensor own_rows(const at::Tensor& all) const;

  // These need ranks that divide, record no gradients, and are collective over ranks().

  /// The part [part, width], of its ranks' own rows [own, width].
  at::Tensor gather(const at::Tensor& own) const;
  /// Own rows [own, width] of the sum over ranks of [part, width]. Sums are held in fp32 (fp64 in fp64).
  at::Tensor sum(const at::Tensor& partial) const;

  /// All tokens' rows [B T, width], of all parts [part, width]. Without parts the part itself. No gradients. Collective
  /// over context().
  at::Tensor gather_parts(const at::Tensor& part) const;

 private:
  Communicator *context_ = nullptr, *tensor_ = nullptr;
  std::int64_t batch_ = 0, length_ = 0, part_ = 0, own_ = 0, first_ = 0;
};

/// The shape of the activations between units, of this width: [B, T, width], or [1, own, width].
std::vector<std::int64_t> activation_shape(const ForwardContext& context, std::int64_t width);

/// tensor <- the sum over ranks, held in fp32 (fp64 in fp64) and rounded once.
void sum_over(Communicator& ranks, const at::Tensor& tensor);

/// The rows, and zeros behind them up to `count`. Contiguous.
at::Tensor lengthened(const at::Tensor& rows, std::int64_t count);

}  // namespace zero
