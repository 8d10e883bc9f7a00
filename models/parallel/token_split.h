#pragma once
// TokenSplit: the tokens of a micro-batch that this rank holds between products. The B T tokens, in the order of the
// batch, are divided twice. Each rank of the context axis has one part (DeepSpeed-Ulysses, Jacobs et al. 2023). The
// ranks of the tensor axis divide that part (sequence parallelism, Korthikanti et al. 2022). All ranks have the same
// number of rows: if the tokens do not divide evenly, they are padded with zeros.
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "comm/communicator.h"
#include "models/unit.h"

namespace zero {

class TokenSplit {
 public:
  /// One rank holds all tokens.
  TokenSplit() = default;
  /// Divides the tokens of context.batch over context.context_ranks and context.tensor_ranks.
  explicit TokenSplit(const ForwardContext& context);

  /// True unless this rank holds all tokens of the batch.
  bool any() const { return context_ || tensor_; }
  /// divides(): ranks of the tensor axis divide the part. has_parts(): ranks of the context axis have parts.
  bool divides() const { return tensor_ != nullptr; }
  bool has_parts() const { return context_ != nullptr; }
  /// The ranks of the tensor axis, only if divides(), and of the context axis, only if has_parts().
  Communicator& ranks() const { return *tensor_; }
  Communicator& context() const { return *context_; }

  /// Sizes of the whole micro-batch.
  std::int64_t batch() const { return batch_; }
  std::int64_t length() const { return length_; }
  std::int64_t tokens() const { return batch_ * length_; }
  /// The number of rows of the part, and of this rank, including padding. Without a context axis the part is all
  /// tokens.
  std::int64_t part() const { return part_; }
  std::int64_t own() const { return own_; }
  /// The index of the part's first token among all tokens.
  std::int64_t first() const { return first_; }
  /// The index of this rank's first token among all tokens. Padding may follow the part's last token.
  std::int64_t own_first() const;
  /// The shape of the part's activations: [B, T, width] if the part is all tokens, otherwise [1, part, width].
  std::vector<std::int64_t> part_shape(std::int64_t width) const;

  /// Selects the part's rows [part, ...], or this rank's rows [own, ...], from rows [B T, ...] that every rank has.
  at::Tensor part_rows(const at::Tensor& all) const;
  at::Tensor own_rows(const at::Tensor& all) const;

  // gather() and sum() require divides(). They are collective over ranks(), and autograd does not record them.

  /// Gathers the part [part, width] from each rank's rows [own, width].
  at::Tensor gather(const at::Tensor& own) const;
  /// Sums [part, width] over ranks and returns this rank's rows [own, width]. Sums are held in fp32 (fp64 for fp64).
  at::Tensor sum(const at::Tensor& partial) const;

  /// Gathers all tokens' rows [B T, width] from all parts [part, width]. Without a context axis, returns the part.
  /// Autograd does not record it. Collective over context().
  at::Tensor gather_parts(const at::Tensor& part) const;

 private:
  Communicator *context_ = nullptr, *tensor_ = nullptr;
  std::int64_t batch_ = 0, length_ = 0, part_ = 0, own_ = 0, first_ = 0;
};

/// The shape of activations of this width between units: [B, T, width], or [1, own, width].
std::vector<std::int64_t> activation_shape(const ForwardContext& context, std::int64_t width);

/// tensor <- the sum over ranks, held in fp32 (fp64 for fp64) and rounded once.
void sum_over(Communicator& ranks, const at::Tensor& tensor);

/// Pads rows with zeros to `count` rows. The result is contiguous.
at::Tensor lengthened(const at::Tensor& rows, std::int64_t count);

}  // namespace zero
