#include "models/nn/embedding.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "models/ops/precise_type.h"

namespace zero {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The rows that occur, in order, and which of them each id names. On Meta as many as there can be.
std::tuple<at::Tensor, at::Tensor> used_rows(const at::Tensor& ids, std::int64_t vocabulary) {
  if (ids.is_meta()) return {at::empty({std::min(vocabulary, ids.numel())}, ids.options()), at::empty_like(ids)};
  return at::_unique(ids, /*sorted=*/true, /*return_inverse=*/true);
}

class EmbeddingFunction : public torch::autograd::Function<EmbeddingFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& weight, const at::Tensor& ids) {
    context->save_for_backward({ids});
    context->saved_data["vocabulary"] = weight.size(0);
    return weight.index_select(0, ids.reshape({-1})).view({ids.size(0), ids.size(1), weight.size(1)});
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const at::Tensor ids = context->get_saved_variables()[0].reshape({-1});
    const at::Tensor dy = grads[0].reshape({ids.numel(), grads[0].size(2)});
    if (dy.is_cuda())
      return {at::embedding_dense_backward(dy, ids, context->saved_data["vocabulary"].toInt(), -1, false), {}};
    const auto [used, place] = used_rows(ids, context->saved_data["vocabulary"].toInt());
    at::Tensor sums = at::zeros({used.numel(), dy.size(1)}, dy.options().dtype(precise_type(dy.scalar_type())));
    sums.index_add_(0, place, dy.to(sums.scalar_type()));
    at::Tensor dweight = at::zeros({context->saved_data["vocabulary"].toInt(), dy.size(1)}, dy.options());
    dweight.index_copy_(0, used, sums.to(dy.scalar_type()));
    return {dweight, {}};
  }
};

}  // namespace

at::Tensor embed(const at::Tensor& ids, const at::Tensor& weight) { return EmbeddingFunction::apply(weight, ids); }

}  // namespace zero
