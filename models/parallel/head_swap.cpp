#include "models/parallel/head_swap.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

namespace zero {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Exchange : torch::CustomClassHolder {
  TokenSplit split;
  RankColumns columns;
  std::int64_t width = 0;

  /// [ranks, part, own columns] of every rank, of what this one sends to each.
  at::Tensor exchanged(const at::Tensor& sent) const {
    const at::Tensor received = at::empty_like(sent);
    const std::vector<std::int64_t> counts(std::size_t(sent.size(0)), sent[0].numel());
    if (sent.numel() > 0)
      split.context().all_to_all(received.view({-1}), counts, sent.view({-1}), counts, {Phase::activations});
    return received;
  }

  at::Tensor to_columns(const at::Tensor& x) const {
    const at::Tensor rows = x.reshape({split.part(), width});
    std::vector<at::Tensor> sent;
    for (const auto& windows : columns) {
      std::vector<at::Tensor> taken;
      for (const TensorCut::Window& window : windows) taken.push_back(rows.narrow(1, window.begin, window.count));
      sent.push_back(at::cat(taken, 1));
    }
    const at::Tensor received = exchanged(at::stack(sent));
    const std::int64_t own = received.size(2);
    const at::Tensor all = received.view({-1, own}).narrow(0, 0, split.tokens());
    return at::_unsafe_view(all, {split.batch(), split.length(), own});  // no view: attention writes to it
  }

  at::Tensor to_tokens(const at::Tensor& x) const {
    const std::int64_t own = x.size(2), ranks = split.context().size();
    const at::Tensor rows = lengthened(x.reshape({split.tokens(), own}), ranks * split.part());
    const at::Tensor received = exchanged(rows.view({ranks, split.part(), own}));
    const at::Tensor all = at::zeros({split.part(), width}, x.options());
    for (std::int64_t r = 0; r < ranks; ++r) {
      std::int64_t done = 0;
      for (const TensorCut::Window& window : columns[std::size_t(r)]) {
        all.narrow(1, window.begin, window.count).add_(received[r].narrow(1, done, window.count));
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
