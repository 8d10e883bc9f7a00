#include "zero/optim/adamw.h"

namespace zero {

AdamWFactors AdamW::factors(std::int64_t step, double lr, double gradient_scale) const {
  return {.lr = lr,
          .beta1 = options_.beta1,
          .beta2 = options_.beta2,
          .eps = options_.eps,
          .weight_decay = options_.weight_decay,
          .gradient_scale = gradient_scale,
          .step = step};
}

}  // namespace zero
