#include "zero/train/observers/nonfinite_steps.h"

#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "zero/config/optimizer_settings.h"
#include "zero/train/nonfinite/usable_weights.h"

namespace zero {

NonfiniteSteps::NonfiniteSteps(const Parts& parts) : parts_(parts) {
  if (parts_.config.training.precision == "fp16")
    loss_scale_.emplace(LossScaleOptions{.rates = keys_of_rates(parts_.config.optimizer)});
}

void NonfiniteSteps::resumed(const RunPosition& position) {
  restore_loss_scale(position);
  parts_.rule.resume(position.passed);
  // With the other choices a step whose loss is not finite is skipped.
  if (parts_.loop.held() && parts_.rule.choice() == OnNonfinite::stop)
    parts_.loop.last().loss = parts_.loop.held()->metrics.loss;
}

// A checkpoint of a run in another precision has no loss scale.
void NonfiniteSteps::restore_loss_scale(const RunPosition& position) {
  if (loss_scale_) loss_scale_->restore(position.loss_scale.value_or(LossScale().state()));
}

void NonfiniteSteps::before_step(Step& step) {
  if (loss_scale_) step.loss_scale = loss_scale_->scale();
  step.passed_over = parts_.rule.passes_over(step.index + 1);
  if (parts_.rule.watches(step.index + 1)) step.read_at_once = true;
}

void NonfiniteSteps::result_read(Step& step) {
  if (step.passed_over) {
    if (speaks()) log_warning("step ", step.index + 1, " is passed over");
    step.passed = true;
  } else if (step.result.taken) {
    if (loss_scale_) loss_scale_->update(true);
    parts_.rule.took();
    step.after.passed = parts_.rule.state(step.index + 1);
  } else if (!lowers_loss_scale(step)) {
    not_finite(step);
  }
  if (loss_scale_) step.metrics.loss_scale = loss_scale_->scale();
  if (loss_scale_ || parts_.rule.choice() != OnNonfinite::stop)
    step.metrics.skipped = parts_.rule.count_until(step.index + 1) + (loss_scale_ ? loss_scale_->skipped_steps() : 0);
}

NonfiniteReport NonfiniteSteps::report_of(const Step& step) {
  const bool gradients_are_there = !parts_.loop.runs_ahead();  // otherwise the next step has replaced them
  return find_nonfinite(parts_.engine, parts_.batches.loader(), step.index, step.result, step.losses,
                        gradients_are_there);
}

bool NonfiniteSteps::lowers_loss_scale(const Step& step) {
  if (!loss_scale_) return false;
  const bool decides_alone = parts_.rule.choice() == OnNonfinite::stop;
  if (!decides_alone && (loss_scale_->at_floor() || !losses_are_finite(parts_.engine, step.result))) return false;
  const double scale = loss_scale_->scale();
  try {
    loss_scale_->update(false);
  } catch (const Error& error) {
    give_up(text(report_of(step).describe(), ". Nothing was updated: ", error.what()));
  }
  if (speaks())  // all ranks know the report
    log_warning("step ", step.index + 1, ": gradients overflow at loss scale ", scale,
                "; the step is skipped, the scale is now ", loss_scale_->scale());
  return true;
}

void NonfiniteSteps::not_finite(Step& step) {
  const NonfiniteReport report = report_of(step);
  const std::string what = report.describe(), rates = keys_of_rates(parts_.config.optimizer);
  NonfiniteRule& rule = parts_.rule;
  step.passed = true;
  switch (rule.choice()) {
    case OnNonfinite::stop:
      give_up(text(what, ". Nothing was updated. The loss has diverged or the data are at fault: lower ", rates,
                   ", lengthen lr_scheduler.warmup_steps, or look at the step's data; training.on_nonfinite may skip "
                   "such steps"));
    case OnNonfinite::skip:
      if (!rule.skip(step.index + 1))
        give_up(text(what, ". Nothing was updated. The ", rule.in_a_row(),
                     " steps before it were skipped: more in a row than training.max_skipped_steps allows. Lower ",
                     rates, ", or look at the data"));
      if (speaks())
        log_warning(what, ". The step is skipped (", rule.in_a_row(),
                    " in a row, training.max_skipped_steps = ", parts_.config.training.max_skipped_steps, ")");
      return;
    case OnNonfinite::rollback:
      parts_.loop.fail(step.index, !report.states, what);
  }
}

void NonfiniteSteps::figures_known(Step& step) {
  if (!step.result.taken || !parts_.rule.watches(step.index + 1)) return;
  if (const auto states = parts_.states.broken(parts_.loop.taken().updates))
    parts_.loop.fail(step.index, false,
                     text("step ", step.index + 1, ": the states are not finite ", states->describe()));
}

Then NonfiniteSteps::at_boundary() {
  if (!parts_.loop.failed()) return Then::go_on;
  go_back();
  return Then::moved;
}

// The data of a step depend only on its number. All steps are therefore repeated except those that are blamed.
void NonfiniteSteps::go_back() {
  parts_.saving.finish();
  const StepFailure failed = parts_.loop.take_failure();
  parts_.loop.drain();  // their states are replaced
  const std::int64_t newest = parts_.saving.newest();
  const auto end = [&](const std::string& why) { throw Error(text(failed.why, ". The run does not go back: ", why)); };
  const std::string remedy = text(". Lower ", keys_of_rates(parts_.config.optimizer), ", or look at the data");
  if (newest < 0 || newest > failed.at.step) end("there is no checkpoint to go back to" + remedy);
  if (!parts_.rule.go_back())
    end(text("it has done so ", parts_.config.training.max_rollbacks,
             " times (training.max_rollbacks) without a checkpoint beyond the failure", remedy));
  if (!parts_.rule.blame(failed.at, newest))
    end(text("the checkpoint of step ", newest, " was written after the last update, which did it"));
  if (speaks()) log_warning(failed.why, ". Back to the newest checkpoint");
  RunPosition position;
  parts_.states.forget();
  try {
    position = parts_.restore();
  } catch (const InputError& error) {  // not a mistake of the user
    end(error.what());
  }
  if (position.steps > failed.at.step) end("the checkpoints there are of a run that came further");
  if (const auto states = parts_.states.broken(position.updates))
    end(text("the states of the checkpoint of step ", position.steps, " are not finite either, ", states->describe()));
  parts_.loop.go_back_to(position);
}

void NonfiniteSteps::went_back(const RunPosition& position) { restore_loss_scale(position); }

void NonfiniteSteps::give_up(const std::string& why) {
  StepLoop& loop = parts_.loop;
  if (loop.drain()) loop.taken().passed = parts_.rule.state(loop.taken().steps);
  throw Error(why + parts_.saving.rescue(loop.taken()));
}

void NonfiniteSteps::run_ends() {
  StepLoop& loop = parts_.loop;
  try {
    if (loss_scale_) loss_scale_->require_trained(loop.steps(), loop.last().loss);
    if (loop.steps() > 0 && loop.taken().updates == 0 && parts_.rule.choice() != OnNonfinite::stop)
      throw Error(text("all ", loop.steps(),
                       " steps were skipped, since their losses or gradients were not finite: no model "
                       "is written"));
    require_usable();
  } catch (const Error& error) {
    const bool took_some = !loss_scale_ || loss_scale_->skipped_steps() < loop.steps();
    throw Error(error.what() + parts_.saving.rescue(took_some ? loop.position() : RunPosition{}));
  }
}

void NonfiniteSteps::require_usable() {
  const NonfiniteRule& rule = parts_.rule;
  if (const auto states = parts_.states.broken(parts_.loop.taken().updates))
    throw Error("after the last step the states are not finite " + states->describe() +
                ": no model is written, and earlier checkpoints stay");
  if (rule.choice() == OnNonfinite::skip && rule.in_a_row() > 0 &&
      rule.in_a_row() >= parts_.config.training.max_skipped_steps)
    throw Error(text("the last ", rule.in_a_row(),
                     " steps were skipped, as many as training.max_skipped_steps allows: ",
                     "no model is written. Lower ", keys_of_rates(parts_.config.optimizer), ", or look at the data"));
  require_usable_weights(parts_.config, parts_.loop.steps(), rule, parts_.engine, parts_.batches);
}

void NonfiniteSteps::add_to(RunPosition& position) const {
  position.passed = parts_.rule.state(position.steps);
  if (loss_scale_) position.loss_scale = loss_scale_->state();
}

}  // namespace zero
