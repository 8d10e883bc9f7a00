// How the trainer validates: in parts, between which it hears what all ranks were asked for.
#include <algorithm>
#include <utility>

#include "zero/train/told_numbers.h"
#include "zero/train/trainer.h"

namespace zero {

bool Trainer::validates(std::int64_t step) const {
  const std::int64_t interval = config_.training.validation_interval;
  return data_.validation && interval > 0 && ((step + 1) % interval == 0 || step + 1 == steps_);
}

// A run that goes on may have no validation data any more.
void Trainer::validate() {
  if (data_.validation) {
    owed_->validation_loss = validation_loss();
    if (!owed_->validation_loss) return;
    owed_->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }
  tell(*owed_);
  owed_.reset();
}

std::optional<double> Trainer::validation_loss() {
  if (clock_) clock_->validation_begins();
  std::vector<double> losses(std::size_t(engine_.options().sums_in_order ? data_.validation->micro_batches() : 1));
  for (std::int64_t m = 0; m < data_.validation->micro_batches(); ++m) {
    if (m > 0) look_around();
    if (stops() || failed_) return std::nullopt;
    const Batch batch = on_device(data_.validation->batch(m));
    ForwardContext context;
    context.batch = &batch;
    context.loss = &data_.validation->loss();
    losses[std::size_t(m) % losses.size()] += engine_.evaluate(context).item<double>();
  }
  engine_.mesh().ranks().failures().check();  // a collective that was aborted gave no loss
  if (clock_) clock_->validated();
  if (!counts_tokens()) std::fill(losses.begin(), losses.end(), 0.0);
  std::vector<double> mine = wishes(RunClock::Next::step);
  const auto first = std::int64_t(mine.size());
  mine.insert(mine.end(), losses.begin(), losses.end());
  const at::Tensor told = told_numbers(engine_.host(), mine, {Phase::validate});
  agree(told);
  tend_save();
  return sum_of_turns(told, first) / data_.validation->denominator();
}

void Trainer::look_around() {
  if (clock_) clock_->validated_part();
  agree(told_numbers(engine_.host(), wishes(RunClock::Next::part_of_validation), {Phase::validate}));
  if (records_.metrics) records_.metrics->touch();
  tend_save();
  if (!stops() && save_agreed_ && saves()) save_where_it_stands();
}

std::vector<double> Trainer::wishes(RunClock::Next next) const {
  return {double(stop_ && stop_->requested()), double(clock_ && clock_->save_is_due()),
          double(clock_ && clock_->end_is_due(next)),
          double(checkpoints_ ? checkpoints_->progress() : SaveProgress::ended),
          checkpoints_ ? checkpoints_->time().count() : 0.0};
}

// Clocks differ: rank 0's counts.
void Trainer::agree(const at::Tensor& told) {
  const auto number = [&](std::int64_t rank, std::int64_t which) { return told[rank][which].item<double>(); };
  save_progress_ = SaveProgress::ended;
  for (std::int64_t r = 0; r < told.size(0); ++r) {
    stop_agreed_ = stop_agreed_ || number(r, 0) != 0;
    save_progress_ = worse_of(save_progress_, SaveProgress(int(number(r, 3))));
    save_time_ = std::max(save_time_, std::chrono::duration<double>(number(r, 4)));
  }
  save_agreed_ = save_agreed_ || number(0, 1) != 0;
  end_agreed_ = end_agreed_ || number(0, 2) != 0;
}

}  // namespace zero
