#include "models/parallel/activations.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/parallel/saved_split.h"

namespace zero {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor as_rows(const at::Tensor& x) { return x.reshape({-1, x.size(-1)}); }

at::Tensor gathered(const at::Tensor& own, const TokenSplit& split) {
  return split.gather(as_rows(own)).view(split.part_shape(own.size(-1)));
}

at::Tensor scattered(const at::Tensor& partial, const TokenSplit& split) {
  return split.sum(as_rows(partial)).view({1, split.own(), partial.size(-1)});
}

struct GatherTokens : torch::autograd::Function<GatherTokens> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const TokenSplit& split) {
    context->saved_data["split"] = SavedSplit::of(split);
    return gathered(x, split);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {scattered(gradients[0], SavedSplit::from(context->saved_data["split"])), {}};
  }
};

struct ScatterTokens : torch::autograd::Function<ScatterTokens> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const TokenSplit& split) {
    context->saved_data["split"] = SavedSplit::of(split);
    return scattered(x, split);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {gathered(gradients[0], SavedSplit::from(context->saved_data["split"])), {}};
  }
};

struct SumParts : torch::autograd::Function<SumParts> {
  static at::Tensor summed(const at::Tensor& x, const TokenSplit& split) {
    const at::Tensor sum = x.contiguous().clone();
    sum_over(split.ranks(), sum);
    return sum;
  }
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const TokenSplit& split) {
    context->saved_data["split"] = SavedSplit::of(split);
    return summed(x, split);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {summed(gradients[0], SavedSplit::from(context->saved_data["split"])), {}};
  }
};

}  // namespace

Replicated gather_tokens(const TokenPart& x, const TokenSplit& split) {
  return {split.divides() ? GatherTokens::apply(x.x, split) : x.x};
}

TokenPart scatter_tokens(const PartialSum& x, const TokenSplit& split) {
  return {split.divides() ? ScatterTokens::apply(x.x, split) : x.x};
}

at::Tensor sum_parts(const at::Tensor& x, const TokenSplit& split) {
  return split.divides() ? SumParts::apply(x, split) : x;
}

}  // namespace zero
