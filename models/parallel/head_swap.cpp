#include "models/parallel/head_swap.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include <numeric>

namespace zero {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Exchange : torch::CustomClassHolder {
  TokenSplit split;
  RankColumns columns;
  std::int64_t width = 0;

  std::int64_t columns_of(std::size_t rank) const {
    std::int64_t count = 0;
    for (const TensorCut::Window& window : columns[rank]) count += window.count;
    return count;
  }
  std::int64_t own_columns() const { return columns_of(std::size_t(split.context().rank())); }

  /// The number of elements of this rank's part that go to, or come from, each rank.
  std::vector<std::int64_t> counts_of_own_tokens() const {
    std::vector<std::int64_t> counts;
    for (std::size_t r = 0; r < columns.size(); ++r) counts.push_back(split.part() * columns_of(r));
    return counts;
  }
  /// The number of elements of this rank's columns that come from, or go to, each rank.
  std::vector<std::int64_t> counts_of_own_columns() const {
    return std::vector<std::int64_t>(columns.size(), split.part() * own_columns());
  }

  /// [sum of `in`], of [sum of `out`].
  at::Tensor exchanged(const at::Tensor& sent, const std::vector<std::int64_t>& out,
                       const std::vector<std::int64_t>& in) const {
    const at::Tensor received = at::empty({std::accumulate(in.begin(), in.end(), std::int64_t{0})}, sent.options());
    if (split.part() > 0) split.context().all_to_all(received, in, sent, out, {Phase::activations});
    return received;
  }

  at::Tensor to_columns(const at::Tensor& x) const {
    const at::Tensor rows = x.reshape({split.part(), width});
    std::vector<at::Tensor> sent;
    for (const auto& windows : columns) {
      std::vector<at::Tensor> taken;
      for (const TensorCut::Window& window : windows) taken.push_back(rows.narrow(1, window.begin, window.count));
      sent.push_back(at::cat(taken, 1).view({-1}));
    }
    const at::Tensor received = exchanged(at::cat(sent), counts_of_own_tokens(), counts_of_own_columns());
    const at::Tensor all = received.view({-1, own_columns()}).narrow(0, 0, split.tokens());
    return at::_unsafe_view(all, {split.batch(), split.length(), own_columns()});  // no view: attention writes to it
  }

  at::Tensor to_tokens(const at::Tensor& x) const {
    const std::int64_t ranks = split.context().size();
    const at::Tensor rows = lengthened(x.reshape({split.tokens(), own_columns()}), ranks * split.part());
    const at::Tensor received = exchanged(rows.view({-1}), counts_of_own_columns(), counts_of_own_tokens());
    const at::Tensor all = at::zeros({split.part(), width}, x.options());
    std::int64_t begin = 0;
    for (std::size_t r = 0; r < columns.size(); ++r) {
      const std::int64_t count = columns_of(r);
      const at::Tensor from = received.narrow(0, begin, split.part() * count).view({split.part(), count});
      begin += from.numel();
      std::int64_t done = 0;
      for (const TensorCut::Window& window : columns[r]) {
        all.narrow(1, window.begin, window.count).add_(from.narrow(1, done, window.count));
        done += window.count;
      }
    }
    return all.view({1, split.part(), width});
  }
};

c10::intrusive_ptr<Exchange> exchange_of(AutogradContext* context) {
  return c10::static_intrusive_pointer_cast<Exchange>(context->saved_data["exchange"].toCapsule());
}

struct SwapToColumns : torch::autograd::Function<SwapToColumns> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, c10::intrusive_ptr<Exchange> exchange) {
    context->saved_data["exchange"] = c10::IValue::make_capsule(exchange);
    return exchange->to_columns(x);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {exchange_of(context)->to_tokens(gradients[0]), {}};
  }
};

struct SwapToTokens : torch::autograd::Function<SwapToTokens> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, c10::intrusive_ptr<Exchange> exchange) {
    context->saved_data["exchange"] = c10::IValue::make_capsule(exchange);
    return exchange->to_tokens(x);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {exchange_of(context)->to_columns(gradients[0]), {}};
  }
};

c10::intrusive_ptr<Exchange> make_exchange(const TokenSplit& split, const RankColumns& columns, std::int64_t width) {
  auto exchange = c10::make_intrusive<Exchange>();
  exchange->split = split;
  exchange->columns = columns;
  exchange->width = width;
  return exchange;
}

}  // namespace

at::Tensor swap_to_columns(const WidthPart& x, const TokenSplit& split, const RankColumns& columns) {
  return SwapToColumns::apply(x.x, make_exchange(split, columns, x.x.size(2)));
}

WidthPart swap_to_tokens(const at::Tensor& x, const TokenSplit& split, const RankColumns& columns) {
  std::int64_t width = 0;
  for (const auto& windows : columns)
    for (const TensorCut::Window& window : windows) width += window.count;
  return {SwapToTokens::apply(x, make_exchange(split, columns, width))};
}

}  // namespace zero
