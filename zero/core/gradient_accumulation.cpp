#include "zero/core/gradient_accumulation.h"

#include <ATen/ATen.h>

namespace zero {

at::Tensor accumulate_gradients(Engine& engine, std::int64_t micro_batches, double scale,
                                const std::function<ForwardContext(std::int64_t index)>& context_of,
                                std::vector<at::Tensor>* each, LossFigures* figures) {
  const bool in_order = engine.options().sums_in_order;
  const at::Tensor losses =
      at::zeros({in_order ? micro_batches : 1}, at::TensorOptions().dtype(at::kDouble).device(engine.device()));
  for (std::int64_t a = 0; a < micro_batches; ++a) {
    ForwardContext context = context_of(a);
    context.gradient_scale = scale;
    ChainPass pass(engine.chain_run(), context, {a == 0, a + 1 == micro_batches});
    pass.backward(scale);
    losses[in_order ? a : 0].add_(pass.result().detach());
    if (each) each->push_back(pass.result().detach());
    if (figures) add_figures(*figures, pass.figures());
  }
  return losses;
}

}  // namespace zero
