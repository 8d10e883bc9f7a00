#include "zero/train/observers/validation.h"

#include <ATen/ATen.h>

#include <cmath>
#include <utility>

namespace zero {

bool Validation::follows(std::int64_t step) const {
  const std::int64_t interval = parts_.config.training.validation_interval;
  return parts_.rows && interval > 0 && ((step + 1) % interval == 0 || step + 1 == parts_.loop.steps());
}

void Validation::before_step(Step& step) {
  if (!follows(step.index)) return;
  step.validates = true;
  step.read_at_once = true;
}

// A resumed run may no longer have validation data.
Then Validation::at_boundary() {
  StepLoop& loop = parts_.loop;
  if (loop.failed() || loop.stops() || !loop.held()) return Then::go_on;
  std::optional<double> validation_loss;
  if (parts_.rows) {
    validation_loss = loss();
    if (!validation_loss) return Then::go_on;
    if (parts_.samples && std::isfinite(*validation_loss)) parts_.samples->write(loop.held()->metrics.step);
  }
  loop.release(validation_loss);
  return Then::go_on;
}

std::optional<double> Validation::loss() {
  Engine& engine = parts_.engine;
  ValidationLoader& rows = *parts_.rows;
  parts_.clock.validation_begins();
  std::vector<double> losses(std::size_t(engine.options().sums_in_order ? rows.micro_batches() : 1));
  for (std::int64_t m = 0; m < rows.micro_batches(); ++m) {
    if (m > 0) look_around();
    if (parts_.loop.stops() || parts_.loop.failed()) return std::nullopt;
    const Batch batch = on_device(engine, rows.batch(m));
    ForwardContext context;
    context.batch = &batch;
    context.loss = &rows.loss();
    losses[std::size_t(m) % losses.size()] += engine.evaluate(context).item<double>();
  }
  engine.mesh().ranks().failures().check();  // a collective that was aborted gave no loss
  const StepRequests all = parts_.loop.gather(std::move(losses), Pause::validation);
  parts_.saving.tend();
  return all.losses.front() / rows.denominator();
}

void Validation::look_around() {
  parts_.loop.gather({}, Pause::part_of_validation);
  parts_.saving.tend();
  parts_.saving.save_if_asked();
}

}  // namespace zero
