#include "zero/core/gradient_accumulation.h"

#include <ATen/ATen.h>

namespace zero {

at::Tensor accumulate_gradients(Engine& engine, std::int64_t micro_batches, double scale,
                                const std::function<ForwardContext(std::int64_t index)>& context_of) {
  at::Tensor loss_sum = at::zeros({}, at::TensorOptions().dtype(at::kDouble).device(engine.device()));
  for (std::int64_t a = 0; a < micro_batches; ++a) {
    const ForwardContext context = context_of(a);
    const auto pass = engine.forward(context, {a == 0, a + 1 == micro_batches});
    pass->backward(scale);
    loss_sum.add_(pass->result().detach());
  }
  return loss_sum;
}

}  // namespace zero
