#include "models/nn/embedding.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/ops/embedding_backward.h"
#include "models/ops/packed_matrix.h"

namespace zero {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class EmbeddingFunction : public torch::autograd::Function<EmbeddingFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& weight, const at::Tensor& ids) {
    context->save_for_backward({ids});
    context->saved_data["vocabulary"] = weight.size(0);
    const at::Tensor places = ids.reshape({-1});
    const PackedMatrix* packed = PackedMatrix::of(weight);
    const at::Tensor rows = packed ? packed->rows(places, weight.scalar_type()) : weight.index_select(0, places);
    return rows.view({ids.size(0), ids.size(1), weight.size(1)});
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const at::Tensor ids = context->get_saved_variables()[0].reshape({-1});
    const at::Tensor dy = grads[0].reshape({ids.numel(), grads[0].size(2)});
    return {embedding_backward(dy, ids, context->saved_data["vocabulary"].toInt()), {}};
  }
};

}  // namespace

at::Tensor embed(const at::Tensor& ids, const at::Tensor& weight) { return EmbeddingFunction::apply(weight, ids); }

at::Tensor embed_slice(const at::Tensor& ids, const at::Tensor& weight, std::int64_t first) {
  const at::Tensor rows = ids - first, elsewhere = (rows < 0).bitwise_or_(rows >= weight.size(0));
  return embed(rows.masked_fill(elsewhere, 0), weight).masked_fill(elsewhere.unsqueeze(2), 0);
}

}  // namespace zero
