#include "zero/train/observers/step_divergence.h"

namespace zero {

void StepDivergence::before_step(Step& step) {
  if (step.passed_over) return;
  const std::int64_t rows = mismatched_.order().options().global_batch_size;
  batches_.set_divergence(divergence_of(
      engine_,
      {.rows = rows,
       .micro_batches = mismatched_.micro_batches(),
       .batch = [&](std::int64_t m) { return mismatched_.batch(step.index, m); },
       .first_row = [&](std::int64_t m) { return mismatched_.first_sample(step.index, m) - step.index * rows; }}));
}

}  // namespace zero
