#include "zero/train/step_loop.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "zero/config/setup.h"
#include "zero/core/gradient_accumulation.h"

namespace zero {

StepLoop::StepLoop(const Config& config, std::int64_t steps, Engine& engine, TrainingBatches& batches)
    : config_(config), steps_(steps), engine_(engine), batches_(batches), schedule_(schedule_of(config, steps)) {}

void StepLoop::resume(const RunPosition& position) {
  stand_at(position);
  former_seconds_ = position.seconds;
  if (!position.owed_validation.empty()) held_.emplace().metrics = parse_metrics(position.owed_validation);
  for (StepObserver* observer : observers_) observer->resumed(position);
}

void StepLoop::stand_at(const RunPosition& position) {
  taken_ = position;
  steps_done_ = position.steps;
  tokens_ = position.tokens;
  trained_tokens_ = position.trained_tokens;
}

RunEnd StepLoop::run() {
  begin_ = std::chrono::steady_clock::now() - std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                  std::chrono::duration<double>(former_seconds_));
  for (StepObserver* observer : observers_) observer->run_begins();
  while (steps_done_ < steps_ || held_) {
    if (!held_) take_step();
    if (boundary() == Then::stop) return RunEnd::stopped;
  }
  for (StepObserver* observer : observers_) observer->run_ends();
  return RunEnd::finished;
}

Then StepLoop::boundary() {
  for (StepObserver* observer : observers_)
    if (const Then then = observer->at_boundary(); then != Then::go_on) return then;
  return Then::go_on;
}

void StepLoop::take_step() {
  Step step;
  step.index = steps_done_++;
  for (StepObserver* observer : observers_) observer->before_step(step);
  if (step.passed_over)
    pass_over(std::move(step));
  else
    train(std::move(step));
}

void StepLoop::pass_over(Step step) {
  read_all();
  if (failed_) return;
  count(step);
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  const std::int64_t parts = engine_.options().sums_in_order ? batches_.loader().micro_batches() : 1;
  step.result = {std::vector(std::size_t(parts), none), none, false, {}};
  finish(std::move(step));
}

void StepLoop::train(Step step) {
  count(step);
  const at::Tensor losses =
      accumulate_gradients(engine_, batches_.loader().micro_batches(), step.loss_scale / step.denominator,
                           batches_.contexts(step.index), &step.losses, &step.figures);
  for (StepObserver* observer : observers_) observer->gradients_ready(step);
  PendingStepResult pending = engine_.update({.lr = learning_rate(schedule_, step.index),
                                              .max_norm = config_.training.max_norm,
                                              .loss_scale = step.loss_scale,
                                              .schedule = schedule_part(schedule_, step.index)},
                                             losses);
  const bool runs_ahead = !engine_.device().is_cpu() && !step.read_at_once && step.index + 1 < steps_;
  issued_.push_back({std::move(step), std::move(pending)});
  while (issued_.size() > (runs_ahead ? 1 : 0) && !failed_) read_oldest();
}

void StepLoop::count(Step& step) {
  step.input_tokens = batches_.loader().input_tokens(step.index);
  step.trained_tokens = batches_.loader().trained_tokens(step.index);
  step.denominator = batches_.loader().denominator(step.index);
  tokens_ += step.input_tokens;
  trained_tokens_ += step.trained_tokens;
  step.metrics.tokens = tokens_;
  step.metrics.trained_tokens = trained_tokens_;
}

void StepLoop::read_all() {
  while (!issued_.empty() && !failed_) read_oldest();
}

void StepLoop::read_oldest() {
  Issued issued = std::move(issued_.front());
  issued_.pop_front();
  issued.step.result = issued.pending.wait();
  finish(std::move(issued.step));
}

void StepLoop::finish(Step step) {
  step.after = {
      step.index + 1, step.metrics.tokens, step.metrics.trained_tokens, seconds(), taken_.updates + 1, {}, {}};
  for (StepObserver* observer : observers_) observer->result_read(step);
  if (step.result.taken) taken_ = step.after;
  last_.passed = step.passed;
  if (failed_) return;
  std::vector<double> losses = step.result.losses;
  for (double& loss : losses) loss /= step.denominator;
  std::vector<double> figures;
  for (const auto& [name, sum] : step.figures) figures.push_back(sum.item<double>() / step.denominator);
  const StepRequests all =
      gather(std::move(losses), step.validates ? Pause::step_before_validation : Pause::step, std::move(figures));
  StepMetrics& metrics = step.metrics;
  metrics.loss = all.losses.front();
  metrics.peak_bytes = all.peak_bytes;
  if (!step.passed) last_.loss = metrics.loss;
  metrics.step = step.index + 1;
  metrics.grad_norm = step.result.norm;
  metrics.lr = learning_rate(schedule_, step.index);
  metrics.epoch = batches_.loader().order().epochs_after(metrics.step);
  stamp(metrics);
  metrics.optimizer = step.result.optimizer;
  std::vector<std::pair<std::string, double>> means;
  for (std::size_t f = 0; f < step.figures.size(); ++f) means.emplace_back(step.figures[f].first, all.figures[f]);
  append_figures(metrics.optimizer, batches_.loader().loss(), means);
  for (StepObserver* observer : observers_) observer->figures_known(step);
  if (step.validates)
    held_ = std::move(step);
  else
    tell(step);
}

void StepLoop::stamp(StepMetrics& metrics) const {
  using std::chrono::milliseconds;
  metrics.seconds = seconds();
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  metrics.time = double(std::chrono::duration_cast<milliseconds>(now).count()) / 1000;
}

void StepLoop::tell(const Step& step) {
  for (StepObserver* observer : observers_) observer->step_finished(step);
}

void StepLoop::release(std::optional<double> validation_loss,
                       const std::vector<std::pair<std::string, double>>& figures) {
  Step step = std::move(*std::exchange(held_, std::nullopt));
  step.validated = true;
  step.metrics.validation_loss = validation_loss;
  step.metrics.optimizer.insert(step.metrics.optimizer.end(), figures.begin(), figures.end());
  if (validation_loss) stamp(step.metrics);
  tell(step);
}

StepRequests StepLoop::gather(std::vector<double> losses, Pause pause, std::vector<double> figures) {
  StepRequests mine;
  for (StepObserver* observer : observers_) observer->ask(mine, pause);
  mine.losses = std::move(losses);
  mine.figures = std::move(figures);
  if (!counts_tokens())
    for (std::vector<double>* parts : {&mine.losses, &mine.figures}) std::fill(parts->begin(), parts->end(), 0.0);
  const bool validates = pause == Pause::part_of_validation || pause == Pause::validation;
  StepRequests all = gathered(engine_.host(), mine, {validates ? Phase::validate : Phase::other});
  asked_.add(all);
  return all;
}

bool StepLoop::drain() {
  bool took = false;
  for (; !issued_.empty(); issued_.pop_front()) {
    const Step& step = issued_.front().step;
    if (!issued_.front().pending.wait().taken) continue;
    took = true;
    taken_ = {step.index + 1, step.metrics.tokens, step.metrics.trained_tokens, seconds(), taken_.updates + 1, {}, {}};
  }
  return took;
}

void StepLoop::fail(std::int64_t step, bool states_are_finite, std::string why) {
  failed_ = StepFailure{{step + 1, states_are_finite, taken_.steps}, std::move(why)};
}

StepFailure StepLoop::take_failure() { return *std::exchange(failed_, std::nullopt); }

void StepLoop::go_back_to(const RunPosition& position) {
  stand_at(position);
  last_.passed = false;
  held_.reset();
  for (StepObserver* observer : observers_) observer->went_back(position);
}

double StepLoop::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

RunPosition StepLoop::position() const {
  RunPosition position{steps_done_, tokens_, trained_tokens_, seconds(), engine_.steps_done(), {}, {}};
  if (held_) position.owed_validation = format_metrics(held_->metrics);
  for (const StepObserver* observer : observers_) observer->add_to(position);
  return position;
}

}  // namespace zero
