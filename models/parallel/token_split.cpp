#include "models/parallel/token_split.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <algorithm>

namespace zero {
namespace {

Communicator* of_several(Communicator* ranks) { return ranks && ranks->size() > 1 ? ranks : nullptr; }

/// Rows [begin, end) of `all`. Rows beyond its end are zeros.
at::Tensor rows_of(const at::Tensor& all, std::int64_t begin, std::int64_t end, std::int64_t count) {
  const std::int64_t from = std::min(begin, all.size(0)), to = std::min(end, all.size(0));
  return lengthened(all.narrow(0, from, to - from), count);
}

at::Tensor gathered(Communicator& ranks, const at::Tensor& own) {
  const at::Tensor all = at::empty({ranks.size() * own.size(0), own.size(1)}, own.options());
  if (all.numel() > 0) ranks.all_gather_into(all.view({-1}), own.contiguous().view({-1}), {Phase::activations});
  return all;
}

}  // namespace

at::Tensor lengthened(const at::Tensor& rows, std::int64_t count) {
  if (rows.size(0) == count) return rows.contiguous();
  std::vector<std::int64_t> shape = rows.sizes().vec();
  shape[0] = count;
  const at::Tensor all = at::empty(shape, rows.options());
  all.narrow(0, 0, rows.size(0)).copy_(rows);
  all.narrow(0, rows.size(0), count - rows.size(0)).zero_();
  return all;
}

TokenSplit::TokenSplit(const ForwardContext& context)
    : context_(of_several(context.context_ranks)), tensor_(of_several(context.tensor_ranks)) {
  if (!any()) return;
  batch_ = context.batch->ids.size(0);
  length_ = context.batch->ids.size(1);
  part_ = tokens();
  if (context_) {
    part_ = (tokens() + context_->size() - 1) / context_->size();
    first_ = context_->rank() * part_;
  }
  own_ = tensor_ ? (part_ + tensor_->size() - 1) / tensor_->size() : part_;
}

std::vector<std::int64_t> TokenSplit::part_shape(std::int64_t width) const {
  return context_ ? std::vector<std::int64_t>{1, part_, width} : std::vector<std::int64_t>{batch_, length_, width};
}

at::Tensor TokenSplit::part_rows(const at::Tensor& all) const { return rows_of(all, first_, first_ + part_, part_); }

std::int64_t TokenSplit::own_first() const { return first_ + (tensor_ ? tensor_->rank() * own_ : 0); }

at::Tensor TokenSplit::own_rows(const at::Tensor& all) const {
  const std::int64_t begin = own_first();
  return rows_of(all, std::min(begin, first_ + part_), std::min(begin + own_, first_ + part_), own_);
}

at::Tensor TokenSplit::gather(const at::Tensor& own) const { return gathered(*tensor_, own).narrow(0, 0, part_); }

at::Tensor TokenSplit::sum(const at::Tensor& partial) const {
  const at::Tensor full = lengthened(partial, tensor_->size() * own_),
                   own = at::empty({own_, partial.size(1)}, partial.options());
  if (own.numel() > 0)
    tensor_->reduce_scatter(own.view({-1}), full.view({-1}), {at::toOpMathType(own.scalar_type()), false},
                            {Phase::activations});
  return own;
}

at::Tensor TokenSplit::gather_parts(const at::Tensor& part) const {
  return context_ ? gathered(*context_, part).narrow(0, 0, tokens()) : part;
}

std::vector<std::int64_t> activation_shape(const ForwardContext& context, std::int64_t width) {
  const TokenSplit split(context);
  if (split.any()) return {1, split.own(), width};
  return {context.batch->ids.size(0), context.batch->ids.size(1), width};
}

void sum_over(Communicator& ranks, const at::Tensor& tensor) {
  if (tensor.numel() > 0)
    ranks.all_reduce(tensor.view({-1}), {at::toOpMathType(tensor.scalar_type()), false}, {Phase::activations});
}

}  // namespace zero
