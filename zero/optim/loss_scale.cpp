#include "zero/optim/loss_scale.h"

#include <algorithm>
#include <cmath>

#include "base/counted.h"
#include "base/error.h"
#include "base/log.h"

namespace zero {

LossScale::LossScale(const LossScaleOptions& options) : options_(options), scale_(options.start) {}

bool LossScale::update(bool finite) {
  if (finite) {
    if (++clean_steps_ >= options_.growth_interval) {
      scale_ = std::min(scale_ * 2, options_.ceiling);
      clean_steps_ = 0;
    }
    return true;
  }
  ++skipped_steps_;
  clean_steps_ = 0;
  if (scale_ <= options_.floor) {
    throw Error(text("gradients overflow fp16 even at a loss scale of ", scale_,
                     ": training diverged, or a batch holds bad data; ", "lower ", options_.rates,
                     ", or use training.precision = \"bf16\" or \"fp32\""));
  }
  scale_ = std::max(scale_ / 2, options_.floor);
  return false;
}

void LossScale::require_trained(std::int64_t steps, double last_loss) const {
  const bool all_skipped = steps > 0 && skipped_steps_ >= steps;
  if (!all_skipped && std::isfinite(last_loss)) return;
  const std::string what =
      all_skipped ? text(steps == 1 ? "the only step was" : text("all ", steps, " steps were"),
                         " skipped, since gradients overflow fp16; the loss scale has come down to ", scale_)
                  : text("the loss is ", last_loss, " after the last step, with ", skipped_steps_, " of ",
                         counted(steps, "step"), " skipped");
  throw Error(what + ": no model is written, and earlier checkpoints stay. " +
              (all_skipped ? "Train longer, lower" : "Lower") + " " + options_.rates +
              ", or use training.precision = \"bf16\" or \"fp32\"");
}

void LossScale::restore(double scale, std::int64_t clean_steps, std::int64_t skipped_steps) {
  ZERO_CHECK(scale >= options_.floor, text("a loss scale of ", scale, " is below the floor"));
  scale_ = scale;
  clean_steps_ = clean_steps;
  skipped_steps_ = skipped_steps;
}

}  // namespace zero
