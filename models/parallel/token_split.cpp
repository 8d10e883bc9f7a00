#include "models/parallel/token_split.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <algorithm>

namespace zero {
namespace {

/// The rows, and zeros behind them up to `count`.
at::Tensor lengthened(const at::Tensor& rows, std::int64_t count) {
  if (rows.size(0) == count) return rows.contiguous();
  std::vector<std::int64_t> shape = rows.sizes().vec();
  shape[0] = count;
  at::Tensor all = at::empty(shape, rows.options());
  all.narrow(0, 0, rows.size(0)).copy_(rows);
  all.narrow(0, rows.size(0), count - rows.size(0)).zero_();
  return all;
}

}  // namespace

TokenSplit::TokenSplit(const ForwardContext& context) {
  if (!context.tensor_ranks || context.tensor_ranks->size() == 1) return;
  ranks_ = context.tensor_ranks;
  batch_ = context.batch->ids.size(0);
  length_ = context.batch->ids.size(1);
  own_ = (batch_ * length_ + ranks_->size() - 1) / ranks_->size();
}

at::Tensor TokenSplit::gather(const at::Tensor& own) const {
  const at::Tensor all = at::empty({ranks_->size() * own_, own.size(1)}, own.options());
  if (all.numel() > 0) ranks_->all_gather_into(all.view({-1}), own.contiguous().view({-1}), {Phase::activations});
  return all.narrow(0, 0, batch_ * length_);
}

at::Tensor TokenSplit::sum(const at::Tensor& partial) const {
  const at::Tensor full = lengthened(partial, ranks_->size() * own_),
                   own = at::empty({own_, partial.size(1)}, partial.options());
  if (own.numel() > 0)
    ranks_->reduce_scatter(own.view({-1}), full.view({-1}), {at::toOpMathType(own.scalar_type()), false},
                           {Phase::activations});
  return own;
}

at::Tensor TokenSplit::own_rows(const at::Tensor& all) const {
  const std::int64_t begin = std::min(ranks_->rank() * own_, all.size(0)), end = std::min(begin + own_, all.size(0));
  return lengthened(all.narrow(0, begin, end - begin), own_);
}

void sum_over(Communicator& ranks, const at::Tensor& tensor) {
  if (tensor.numel() > 0)
    ranks.all_reduce(tensor.view({-1}), {at::toOpMathType(tensor.scalar_type()), false}, {Phase::activations});
}

}  // namespace zero
