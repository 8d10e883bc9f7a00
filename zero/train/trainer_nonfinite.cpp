// What the trainer does about steps whose loss or gradients are not finite.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "comm/object_collectives.h"
#include "zero/config/optimizer_settings.h"
#include "zero/train/trainer.h"

namespace zero {

NonfiniteReport Trainer::report_of(const Issued& issued, const StepResult& result) {
  const bool gradients_are_there = issued_.empty();  // else the step behind it has replaced them
  return find_nonfinite(engine_, *data_.training, issued.step, result, issued.losses, gradients_are_there);
}

bool Trainer::lowers_loss_scale(const Issued& issued, const StepResult& result) {
  if (!loss_scale_) return false;
  const bool decides_alone = rule_.choice() == OnNonfinite::stop;
  if (!decides_alone && (loss_scale_->at_floor() || !losses_are_finite(engine_, result))) return false;
  const double scale = loss_scale_->scale();
  try {
    loss_scale_->update(false);
  } catch (const Error& error) {
    give_up(text(report_of(issued, result).describe(), ". Nothing was updated: ", error.what()));
  }
  if (engine_.host().rank() == 0)  // all ranks know of it
    log_warning("step ", issued.step + 1, ": gradients overflow at loss scale ", scale,
                "; the step is skipped, the scale is now ", loss_scale_->scale());
  return true;
}

void Trainer::not_finite(const Issued& issued, const StepResult& result) {
  const NonfiniteReport report = report_of(issued, result);
  const std::string what = report.describe();
  const bool speaks = engine_.host().rank() == 0;
  passed_ = true;
  switch (rule_.choice()) {
    case OnNonfinite::stop:
      give_up(text(what, ". Nothing was updated. The loss has diverged or the data are at fault: lower ",
                   keys_of_rates(config_.optimizer),
                   ", lengthen lr_scheduler.warmup_steps, or look at the step's data; training.on_nonfinite may skip "
                   "such steps"));
    case OnNonfinite::skip:
      if (!rule_.skip(issued.step + 1))
        give_up(text(what, ". Nothing was updated. The ", rule_.in_a_row(),
                     " steps before it were skipped: more in a row than training.max_skipped_steps allows. Lower ",
                     keys_of_rates(config_.optimizer), ", or look at the data"));
      if (speaks)
        log_warning(what, ". The step is skipped (", rule_.in_a_row(),
                    " in a row, training.max_skipped_steps = ", config_.training.max_skipped_steps, ")");
      return;
    case OnNonfinite::rollback:
      set_failed(issued.step, !report.states, what);
  }
}

// States change by updates alone.
std::optional<NonfiniteTensors> Trainer::broken_states() {
  if (sound_updates_ == taken_.updates) return std::nullopt;
  const auto found = nonfinite_states(engine_);
  if (!found) sound_updates_ = taken_.updates;
  return found;
}

void Trainer::require_usable() {
  if (const auto states = broken_states())
    throw Error("after the last step the states are not finite " + states->describe() +
                ": no model is written, and earlier checkpoints stay");
  if (rule_.choice() == OnNonfinite::skip && rule_.in_a_row() > 0 &&
      rule_.in_a_row() >= config_.training.max_skipped_steps)
    throw Error(text("the last ", rule_.in_a_row(),
                     " steps were skipped, as many as training.max_skipped_steps allows: ",
                     "no model is written. Lower ", keys_of_rates(config_.optimizer), ", or look at the data"));
  std::int64_t step = steps_;  // the last that was not passed over: its data are good
  while (step > 0 && rule_.passes_over(step)) --step;
  if (step == 0) return;
  Batch batch;
  if (const auto failure = agreed_failure_of(
          [&] { all_or_none(engine_.host(), [&] { batch = on_device(data_.training->batch(step - 1, 0)); }); })) {
    if (engine_.host().rank() == 0) log_warning("the trained weights are not tried on their data: ", *failure);
    return;
  }
  ForwardContext context;
  context.batch = &batch;
  context.loss = &data_.training->loss();
  const double loss = engine_.evaluate(context).item<double>();
  engine_.mesh().ranks().failures().check();
  const std::vector<std::int64_t> finite = all_gather_number(engine_.host(), std::isfinite(loss));
  if (std::ranges::find(finite, 0) != finite.end())
    throw Error(text("with the trained weights the loss of the data of step ", step,
                     " is not finite: the last update has made them too large, and no model is written. Lower ",
                     keys_of_rates(config_.optimizer)));
}

void Trainer::set_failed(std::int64_t step, bool states_are_finite, std::string why) {
  failed_ = Failure{{step + 1, states_are_finite, taken_.steps}, std::move(why)};
}

void Trainer::watch_states(std::int64_t step) {
  if (!rule_.watches(step + 1)) return;
  if (const auto states = broken_states())
    set_failed(step, false, text("step ", step + 1, ": the states are not finite ", states->describe()));
}

void Trainer::pass_over(std::int64_t step) {
  settle_all();
  if (failed_) return;
  const std::int64_t trained = data_.training->trained_tokens(step), tokens = data_.training->input_tokens(step);
  tokens_ += tokens;
  last_tokens_ += tokens;  // no rate comes of what was not computed
  trained_tokens_ += trained;
  if (engine_.host().rank() == 0) log_warning("step ", step + 1, " is passed over");
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  passed_ = true;
  const StepResult nothing{
      std::vector(engine_.options().sums_in_order ? data_.training->micro_batches() : 1, none), none, false, {}};
  record({step, PendingStepResult(nothing), {}, data_.training->denominator(step), tokens_, trained_tokens_}, nothing);
}

// The data of the steps follow from their numbers, so that only those that are blamed are not taken again.
void Trainer::go_back() {
  finish_save();
  const Failure failed = std::move(*failed_);
  failed_.reset();
  for (; !issued_.empty(); issued_.pop_front()) issued_.front().pending.wait();  // of states that go
  const std::int64_t newest = checkpoints_ && restore_ ? newest_checkpoint() : -1;
  const auto end = [&](const std::string& why) { throw Error(text(failed.why, ". The run does not go back: ", why)); };
  const std::string remedy = text(". Lower ", keys_of_rates(config_.optimizer), ", or look at the data");
  if (newest < 0 || newest > failed.at.step) end("there is no checkpoint to go back to" + remedy);
  if (!rule_.go_back())
    end(text("it has done so ", config_.training.max_rollbacks,
             " times (training.max_rollbacks) without a checkpoint beyond the failure", remedy));
  if (!rule_.blame(failed.at, newest))
    end(text("the checkpoint of step ", newest, " was written after the last update, which did it"));
  if (engine_.host().rank() == 0) log_warning(failed.why, ". Back to the newest checkpoint");
  RunPosition position;
  sound_updates_ = -1;
  try {
    position = restore_();
  } catch (const InputError& error) {  // no mistake of the user's
    end(error.what());
  }
  if (position.steps > failed.at.step) end("the checkpoints there are of a run that came further");
  stand_at(position);
  if (const auto states = broken_states())
    end(text("the states of the checkpoint of step ", position.steps, " are not finite either, ", states->describe()));
  checkpoints_->resumed(position.steps);
  passed_ = owes_save_ = false;
  owed_.reset();
  last_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  if (records_.metrics) records_.metrics->cut_after(position.steps);
  if (clock_) clock_->saved({});  // the run stands at a checkpoint
}

}  // namespace zero
