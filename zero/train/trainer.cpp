#include "zero/train/trainer.h"

#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/random.h"
#include "comm/agreement/agreement.h"
#include "comm/object_collectives.h"
#include "models/nn/device_batch.h"
#include "zero/config/optimizer_settings.h"
#include "zero/config/setup.h"
#include "zero/core/gradient_accumulation.h"
#include "zero/train/told_numbers.h"

namespace zero {

Trainer::Trainer(const Config& config, std::int64_t steps, Engine& engine, const TrainerParts& parts)
    : config_(config),
      steps_(steps),
      engine_(engine),
      data_(parts.data),
      records_(parts.records),
      tracker_(parts.tracker),
      checkpoints_(parts.checkpoints),
      stop_(parts.stop),
      clock_(parts.clock),
      schedule_(schedule_of(config, steps)),
      rule_(config.training),
      restore_(parts.restore),
      recorder_(parts.recorder) {
  if (config.training.precision == "fp16")
    loss_scale_.emplace(LossScaleOptions{.rates = keys_of_rates(config.optimizer)});
  if (!config.metrics.dump_first_step.empty()) dump_.emplace(config.metrics.dump_first_step, engine);
}

void Trainer::resume(const RunPosition& position) {
  resumed_ = true;
  stand_at(position);
  last_seconds_ = position.seconds;
  rule_.resume(position.passed);
  if (position.owed_validation.empty()) return;
  owed_ = parse_metrics(position.owed_validation);
  if (rule_.choice() == OnNonfinite::stop) last_loss_ = owed_->loss;  // by the others what is not finite is passed over
}

void Trainer::stand_at(const RunPosition& position) {
  taken_ = position;
  steps_done_ = position.steps;
  tokens_ = last_tokens_ = position.tokens;
  trained_tokens_ = position.trained_tokens;
  // A checkpoint of a run in another precision has none.
  if (loss_scale_) loss_scale_->restore(position.loss_scale.value_or(LossScale().state()));
}

RunEnd Trainer::run() {
  begin_ = std::chrono::steady_clock::now() - std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                  std::chrono::duration<double>(last_seconds_));
  if (clock_) clock_->stepped();
  if (recorder_) begin_record();
  while (steps_done_ < steps_ || owed_) {
    if (!owed_) take_step();
    if (recorder_ && !failed_ && recorder_->ends_after(steps_done_)) return end_recorded();
    tend_save();
    if (!failed_ && (stops() || saves())) settle_all();
    if (!failed_ && !stops() && saves()) save_where_it_stands();
    if (!failed_ && !stops() && owed_) validate();
    if (!failed_ && stops()) return end_early();
    if (failed_) go_back();
  }
  if (records_.progress) records_.progress->finish();
  finish_save();
  require_trained();
  // Going on once more must find the end, not where the run stopped before.
  if (resumed_ && checkpoints_ && !config_.checkpoint.is_regular()) checkpoints_->save(position());
  return RunEnd::finished;
}

void Trainer::take_step() {
  const std::int64_t step = steps_done_++;
  if (rule_.passes_over(step + 1))
    pass_over(step);
  else
    train_step(step);
}

void Trainer::save_where_it_stands() {
  if (records_.progress) records_.progress->finish();
  const auto begin = std::chrono::steady_clock::now();
  if (worth_saving()) save(steps_done_ < steps_ ? Waits::for_the_copy : Waits::to_the_end, begin);
}

// States that are no better than those that are saved would push them out.
bool Trainer::worth_saving() {
  std::string why;
  if (rule_.choice() == OnNonfinite::stop && !std::isfinite(last_loss_)) {
    why = text("the loss is ", last_loss_);
  } else if (passed_ && steps_done_ < steps_) {
    owes_save_ = true;
    return false;
  } else if (const auto states = broken_states()) {
    why = "the states are not finite " + states->describe();
    if (rule_.choice() == OnNonfinite::rollback)
      set_failed(steps_done_ - 1, false, text("step ", steps_done_, ": ", why));
  } else {
    return true;
  }
  if (failed_) return false;
  if (engine_.host().rank() == 0) log_warning("no checkpoint of step ", steps_done_, ": ", why);
  save_agreed_ = owes_save_ = false;
  if (clock_) clock_->saved({});  // the next one comes at its time
  return false;
}

bool Trainer::save(Waits waits, std::chrono::steady_clock::time_point begin) {
  finish_save();
  if (checkpoints_->has(steps_done_)) return true;  // as it stands before a validation
  if (records_.metrics) records_.metrics->sync();
  bool saved = false;
  if (waits == Waits::to_the_end)
    saved = checkpoints_->save(position());
  else
    checkpoints_->begin(position());
  save_progress_ = SaveProgress::under_way;  // nothing is known of this one
  save_time_ = {};
  save_agreed_ = owes_save_ = false;
  rule_.saved(checkpoints_->saved_steps());
  if (clock_) clock_->saved(std::chrono::steady_clock::now() - begin);
  tell_clock_of_save();
  return saved;
}

void Trainer::tend_save() {
  const SaveProgress told = std::exchange(save_progress_, SaveProgress::under_way);
  if (!checkpoints_ || !checkpoints_->under_way()) return;
  if (told != SaveProgress::under_way) checkpoints_->go_on(told == SaveProgress::failed);
  rule_.saved(checkpoints_->saved_steps());
  tell_clock_of_save(save_time_);
}

void Trainer::finish_save() {
  if (!checkpoints_ || !checkpoints_->under_way()) return;
  const auto begin = std::chrono::steady_clock::now();
  checkpoints_->finish();
  rule_.saved(checkpoints_->saved_steps());
  tell_clock_of_save(save_time_ + (std::chrono::steady_clock::now() - begin));
}

void Trainer::tell_clock_of_save(std::chrono::duration<double> took) {
  if (!clock_) return;
  clock_->saves_behind(checkpoints_->under_way(), took);
  if (!checkpoints_->under_way() && !checkpoints_->failed()) clock_->written();
}

void Trainer::begin_record() {
  const double none = std::numeric_limits<double>::quiet_NaN();
  recorder_->figures(steps_done_, {none, none, loss_scale_ ? loss_scale_->scale() : 1.0, engine_.steps_done()});
  recorder_->states(steps_done_);
}

RunEnd Trainer::end_recorded() {
  if (records_.progress) records_.progress->finish();
  if (recorder_->saves() && !save(Waits::to_the_end, std::chrono::steady_clock::now()))
    throw Error("the checkpoint of a recorded run could not be written");
  return RunEnd::stopped;
}

RunEnd Trainer::end_early() {
  if (records_.progress) records_.progress->finish();
  const auto begin = std::chrono::steady_clock::now();
  const std::string where = text("stopped ", stop_agreed_ ? "on request" : "ahead of job.time_limit", " after step ",
                                 steps_done_, " of ", steps_, owed_ ? ", whose validation is left" : "");
  if (const auto states = broken_states()) {
    const std::string why = "the states are not finite " + states->describe() + ", and no checkpoint is made of them";
    finish_save();
    const std::int64_t newest = newest_checkpoint();
    if (newest < 0) throw Error(text(where, ": ", why, ". There is none before it: begin anew"));
    if (engine_.host().rank() == 0) log_warning(why);
    log_info(where, ": --resume goes on from step ", newest);
    return RunEnd::stopped;
  }
  if (!save(Waits::to_the_end, begin))
    throw Error(text(where, ", but ", checkpoints_->folders().root(), " could not take its checkpoint. ",
                     checkpoints_->remedy(checkpoints_->save_anywhere(position()))));
  log_info(where, ": go on with --resume");
  return RunEnd::stopped;
}

std::int64_t Trainer::newest_checkpoint() {
  std::int64_t newest = -1;
  // File systems may show other nodes another folder.
  on_first(engine_.host(), [&] {
    for (const std::int64_t step : checkpoints_->folders().steps()) newest = std::max(newest, step);
  });
  return broadcast_number(engine_.host(), newest, 0);
}

void Trainer::require_trained() {
  try {
    if (loss_scale_) loss_scale_->require_trained(steps_, last_loss_);
    if (steps_ > 0 && taken_.updates == 0 && rule_.choice() != OnNonfinite::stop)
      throw Error(text("all ", steps_,
                       " steps were skipped, since their losses or gradients were not finite: no model "
                       "is written"));
    require_usable();
  } catch (const Error& error) {
    const bool took_some = !loss_scale_ || loss_scale_->skipped_steps() < steps_;
    throw Error(error.what() + rescue(took_some ? position() : RunPosition{}));
  }
}

// Where checkpoints are written the older ones are worth more than states on their way out.
std::string Trainer::rescue(RunPosition position) {
  finish_save();
  if (!checkpoints_ || config_.checkpoint.is_regular() || position.steps == 0 || position.updates == 0) return "";
  if (broken_states()) return ". The trained states are not kept: they are not finite";
  if (records_.metrics) records_.metrics->sync();
  if (records_.metrics) position.unwritten_records = records_.metrics->waiting();
  return ". " + checkpoints_->remedy(checkpoints_->save_anywhere(position)) +
         ". Steps before this one may have harmed them already: where they fail again, begin anew";
}

RunPosition Trainer::position() const {
  RunPosition position{steps_done_,
                       tokens_,
                       trained_tokens_,
                       std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(),
                       engine_.steps_done(),
                       {},
                       rule_.state(steps_done_)};
  if (loss_scale_) position.loss_scale = loss_scale_->state();
  if (records_.metrics) position.unwritten_records = records_.metrics->waiting();
  if (owed_) position.owed_validation = format_metrics(*owed_);
  return position;
}

void Trainer::train_step(std::int64_t step) {
  const std::int64_t trained = data_.training->trained_tokens(step);
  const double denominator = data_.training->denominator(step);
  const double loss_scale = loss_scale_ ? loss_scale_->scale() : 1.0;
  std::vector<at::Tensor> each;
  LossFigures figures;
  const at::Tensor losses = forward_backward(step, loss_scale / denominator, each, figures);
  if (dump_ && step == 0) dump_->finish(denominator);
  if (recorder_) recorder_->gradients(step + 1, loss_scale);
  tokens_ += data_.training->input_tokens(step);
  trained_tokens_ += trained;
  PendingStepResult pending = engine_.update({.lr = learning_rate(schedule_, step),
                                              .max_norm = config_.training.max_norm,
                                              .loss_scale = loss_scale,
                                              .schedule = schedule_part(schedule_, step)},
                                             losses);
  issued_.push_back(
      {step, std::move(pending), std::move(each), denominator, tokens_, trained_tokens_, std::move(figures)});
  const bool runs_ahead = !engine_.device().is_cpu() && !recorder_ && !validates(step) && !saves_after() &&
                          step + 1 < steps_ && !rule_.watches(step + 1);
  while (issued_.size() > (runs_ahead ? 1 : 0) && !failed_) settle();
  if (recorder_) recorder_->states(step + 1);
}

void Trainer::settle_all() {
  while (!issued_.empty() && !failed_) settle();
}

Batch Trainer::on_device(const Batch& batch) const {
  return to_device(batch, engine_.device(), engine_.options().precision.compute);
}

at::Tensor Trainer::forward_backward(std::int64_t step, double scale, std::vector<at::Tensor>& losses,
                                     LossFigures& figures) {
  Batch batch;
  const auto context_of = [&](std::int64_t a) {
    batch = {};  // two are never held
    batch = on_device(data_.training->batch(step, a));
    ForwardContext context;
    context.batch = &batch;
    context.loss = &data_.training->loss();
    context.training = true;
    context.seed = mix_seed(std::uint64_t(config_.training.seed), std::uint64_t(step));
    context.first_sample = data_.training->first_sample(step, a);
    if (dump_ && step == 0) dump_->add_logits(context);
    return context;
  };
  return accumulate_gradients(engine_, data_.training->micro_batches(), scale, context_of, &losses, &figures);
}

void Trainer::settle() {
  Issued issued = std::move(issued_.front());
  issued_.pop_front();
  const StepResult result = issued.pending.wait();
  passed_ = false;
  if (result.taken) {
    if (loss_scale_) loss_scale_->update(true);
    rule_.took();
    note_taken(issued);
  } else if (!lowers_loss_scale(issued, result)) {
    not_finite(issued, result);
  }
  if (failed_) return;
  record(issued, result);
  if (result.taken) watch_states(issued.step);
}

void Trainer::note_taken(const Issued& issued) {
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin_;
  taken_ = {issued.step + 1,
            issued.tokens,
            issued.trained_tokens,
            seconds.count(),
            taken_.updates + 1,
            {},
            rule_.state(issued.step + 1)};
}

void Trainer::give_up(const std::string& why) {
  for (; !issued_.empty(); issued_.pop_front())
    if (issued_.front().pending.wait().taken) note_taken(issued_.front());
  throw Error(why + rescue(taken_));
}

void Trainer::record(const Issued& issued, const StepResult& result) {
  const std::int64_t step = issued.step;
  // What each rank wishes, its peak and its part of the loss: one small gather a step.
  if (clock_) clock_->stepped();
  std::vector<double> mine = wishes(validates(step) ? RunClock::Next::validation : RunClock::Next::step);
  const std::size_t first_figure = mine.size();
  for (const auto& [name, sum] : issued.figures)
    mine.push_back(counts_tokens() ? sum.item<double>() / issued.denominator : 0.0);
  const std::size_t peak = mine.size();
  mine.push_back(double(engine_.device().is_cpu() ? tracker_.peak() : engine_.peak_device_bytes()));
  for (double loss : result.losses) mine.push_back(counts_tokens() ? loss / issued.denominator : 0.0);
  const at::Tensor told = told_numbers(engine_.host(), mine, {Phase::other});
  agree(told);
  StepMetrics metrics;
  metrics.loss = sum_of_turns(told, std::int64_t(peak) + 1);
  for (int r = 0; r < engine_.host().size(); ++r)
    metrics.peak_bytes = std::max(metrics.peak_bytes, std::int64_t(told[r][std::int64_t(peak)].item<double>()));
  if (!passed_) last_loss_ = metrics.loss;
  metrics.step = step + 1;
  metrics.grad_norm = result.norm;
  metrics.lr = learning_rate(schedule_, step);
  metrics.tokens = issued.tokens;
  metrics.trained_tokens = issued.trained_tokens;
  metrics.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  metrics.tokens_per_second = double(issued.tokens - last_tokens_) / std::max(1e-9, metrics.seconds - last_seconds_);
  metrics.optimizer = result.optimizer;
  for (std::size_t i = 0; i < issued.figures.size(); ++i)
    metrics.optimizer.emplace_back(issued.figures[i].first,
                                   told.select(1, std::int64_t(first_figure + i)).sum().item<double>());
  if (loss_scale_) metrics.loss_scale = loss_scale_->scale();
  if (loss_scale_ || rule_.choice() != OnNonfinite::stop)
    metrics.skipped = rule_.count_until(step + 1) + (loss_scale_ ? loss_scale_->skipped_steps() : 0);
  if (recorder_)
    recorder_->figures(
        step + 1, {metrics.loss, metrics.grad_norm, loss_scale_ ? loss_scale_->scale() : 1.0, engine_.steps_done()});
  if (validates(step))
    owed_ = metrics;
  else
    tell(metrics);
}

void Trainer::tell(const StepMetrics& metrics) {
  const bool due = metrics.step % config_.metrics.log_interval == 0 || metrics.step == steps_ ||
                   metrics.validation_loss || owed_ || passed_;
  if (records_.metrics && due) records_.metrics->write(metrics);
  if (records_.progress) records_.progress->show(metrics);
  if (!due) return;
  last_seconds_ = metrics.seconds;
  last_tokens_ = metrics.tokens;
}

}  // namespace zero
