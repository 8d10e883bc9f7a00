#include "zero/core/gradient_accumulation.h"

#include <ATen/ATen.h>

#include "base/activity_clock.h"

namespace zero {

at::Tensor accumulate_gradients(Engine& engine, std::int64_t micro_batches, double scale, const ContextOf& context_of,
                                std::vector<at::Tensor>* each, LossFigures* figures) {
  const ActivityScope scope(Activity::kernels);
  const bool in_order = engine.options().sums_in_order;
  if (Pipeline* pipeline = engine.pipeline()) {
    Pipeline::Result result = pipeline->accumulate(micro_batches, scale, context_of);
    for (std::int64_t a = 0; each && a < micro_batches; ++a) each->push_back(result.losses[a]);
    if (figures) add_figures(*figures, result.figures);
    return in_order ? result.losses : result.losses.sum().view({1});
  }
  const at::Tensor losses =
      at::zeros({in_order ? micro_batches : 1}, at::TensorOptions().dtype(at::kDouble).device(engine.device()));
  Batch batch;
  for (std::int64_t a = 0; a < micro_batches; ++a) {
    batch = {};  // so that two are never held at once
    ForwardContext context = context_of(a, batch);
    context.gradient_scale = scale;
    ChainPass pass(engine.chain_run(), context, {a == 0, a + 1 == micro_batches});
    pass.backward(scale);
    losses[in_order ? a : 0].add_(pass.loss());
    if (each) each->push_back(pass.loss());
    if (figures) add_figures(*figures, pass.figures());
  }
  return losses;
}

}  // namespace zero
