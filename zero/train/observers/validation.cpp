#include "zero/train/observers/validation.h"

#include <ATen/ATen.h>

#include <cmath>
#include <utility>

#include "zero/train/divergence.h"
#include "zero/train/training_batches.h"

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
  if (!parts_.rows) {
    loop.release(std::nullopt);
    return Then::go_on;
  }
  const std::optional<Result> result = validate();
  if (!result) return Then::go_on;
  if (parts_.samples && std::isfinite(result->loss)) parts_.samples->write(loop.held()->metrics.step);
  loop.release(result->loss, result->figures);
  return Then::go_on;
}

std::optional<Validation::Result> Validation::validate() {
  Engine& engine = parts_.engine;
  ValidationLoader& rows = *parts_.rows;
  parts_.clock.validation_begins();
  std::vector<double> losses(std::size_t(engine.options().sums_in_order ? rows.micro_batches() : 1));
  LossFigures sums;
  LossFigures* const wanted = rows.loss().figures().empty() ? nullptr : &sums;  // stages of a pipeline exchange them
  const std::optional<double> divergence = this->divergence();
  for (std::int64_t m = 0; m < rows.micro_batches(); ++m) {
    if (m > 0) look_around();
    if (!goes_on()) return std::nullopt;
    Batch rows_of_batch = rows.batch(m);
    if (divergence) add_divergence(rows_of_batch, *divergence);
    const Batch batch = on_device(engine, rows_of_batch);
    ForwardContext context;
    context.batch = &batch;
    context.loss = &rows.loss();
    losses[std::size_t(m) % losses.size()] += engine.evaluate(context, {}, wanted).item<double>();
  }
  std::vector<double> figures;
  for (const auto& [name, sum] : sums) figures.push_back(sum.item<double>());
  engine.mesh().ranks().failures().check();  // a collective that was aborted gave no loss
  const StepRequests all = parts_.loop.gather(std::move(losses), Pause::validation, std::move(figures));
  parts_.saving.tend();
  Result result{all.losses.front() / rows.denominator(), {}};
  std::vector<std::pair<std::string, double>> means;
  for (std::size_t f = 0; f < sums.size(); ++f) means.emplace_back(sums[f].first, all.figures[f] / rows.denominator());
  append_figures(result.figures, rows.loss(), means, "validation_");
  return result;
}

std::optional<double> Validation::divergence() {
  ValidationLoader* const rows = parts_.mismatched;
  if (!rows) return std::nullopt;
  return divergence_of(parts_.engine, {.rows = rows->source().size(),
                                       .micro_batches = rows->micro_batches(),
                                       .batch = [&](std::int64_t m) { return rows->batch(m); },
                                       .first_row = [&](std::int64_t m) { return rows->first_row(m); },
                                       .goes_on =
                                           [&] {
                                             look_around();
                                             return goes_on();
                                           }});
}

bool Validation::goes_on() const { return !parts_.loop.stops() && !parts_.loop.failed(); }

void Validation::look_around() {
  parts_.loop.gather({}, Pause::part_of_validation);
  parts_.saving.tend();
  parts_.saving.save_if_asked();
}

}  // namespace zero
