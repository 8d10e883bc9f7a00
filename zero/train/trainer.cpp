#include "zero/train/trainer.h"

#include <ATen/ATen.h>

#include <cmath>

#include "comm/error.h"
#include "comm/log.h"
#include "zero/optim/clip.h"
#include "zero/train/setup.h"

namespace zero {

Trainer::Trainer(const Config& config, std::int64_t steps, Engine& engine, TrainingData& data, Records& records, Ledger& ledger)
    : config_(config), steps_(steps), engine_(engine), data_(data), records_(records), ledger_(ledger),
      schedule_(schedule_of(config, steps)) {
  if (config.training.precision == "fp16") loss_scale_.emplace();
  if (!config.metrics.dump_first_step.empty()) dump_.emplace(config.metrics.dump_first_step, engine);
}

void Trainer::run() {
  begin_ = std::chrono::steady_clock::now();
  for (std::int64_t step = 0; step < steps_; ++step) train_step(step);
  if (records_.progress) records_.progress->finish();
}

void Trainer::train_step(std::int64_t step) {
  const std::int64_t trained = data_.training->trained_tokens(step);
  const double scale = (loss_scale_ ? loss_scale_->scale() : 1.0) / double(trained);
  const double loss_sum = forward_backward(step, scale);
  if (dump_ && step == 0) dump_->finish();
  const double norm = engine_.gradient_norm() / (loss_scale_ ? loss_scale_->scale() : 1.0);
  tokens_ += data_.training->input_tokens(step);
  trained_tokens_ += trained;
  update(step, norm);
  record(step, loss_sum / double(trained), norm);
}

double Trainer::forward_backward(std::int64_t step, double scale) {
  double loss_sum = 0;
  const std::int64_t micro_batches = data_.training->micro_batches();
  for (std::int64_t a = 0; a < micro_batches; ++a) {
    const Batch batch = data_.training->batch(step, a);
    Pass pass;
    pass.batch = &batch;
    pass.training = true;
    pass.seed = mix_seed(std::uint64_t(config_.training.seed), std::uint64_t(step));
    pass.first_sample = data_.training->first_sample(step, a);
    if (dump_ && step == 0) dump_->add_logits(pass);
    const at::Tensor loss = engine_.forward(pass, {a == 0, a + 1 == micro_batches});
    engine_.backward(loss, scale);
    loss_sum += loss.item<double>();
  }
  return loss_sum;
}

bool Trainer::update(std::int64_t step, double norm) {
  const bool finite = std::isfinite(norm);
  if (loss_scale_) {
    const double scale = loss_scale_->scale();
    if (!loss_scale_->update(finite)) {
      log_warning("step ", step + 1, ": gradients overflow at loss scale ", scale, "; the step is skipped, the scale is now ", loss_scale_->scale());
      return false;
    }
    engine_.step(learning_rate(schedule_, step), clip_factor(norm, config_.training.max_norm) / scale);
    return true;
  }
  if (!finite)
    throw Error(text("step ", step + 1, ": the gradients' norm is ", norm, ". Nothing was updated. The loss has diverged or the data are at "
                     "fault: lower optimizer.lr, lengthen lr_scheduler.warmup_steps, or look at the step's data"));
  engine_.step(learning_rate(schedule_, step), clip_factor(norm, config_.training.max_norm));
  return true;
}

double Trainer::validation_loss() {
  double sum = 0;
  for (std::int64_t m = 0; m < data_.validation->micro_batches(); ++m) {
    const Batch batch = data_.validation->batch(m);
    Pass pass;
    pass.batch = &batch;
    sum += engine_.evaluate(pass).item<double>();
  }
  const at::Tensor total = at::full({1}, sum, at::kDouble);
  engine_.communicator().all_reduce(total, {at::kDouble, false}, {Phase::validate});
  return total.item<double>() / double(data_.validation->trained_tokens());
}

void Trainer::record(std::int64_t step, double local_loss, double norm) {
  // Each rank's part of the loss, and its peak: one small gather a step.
  Communicator& communicator = engine_.communicator();
  const at::Tensor mine = at::empty({2}, at::kDouble);
  mine.data_ptr<double>()[0] = local_loss;
  mine.data_ptr<double>()[1] = double(ledger_.peak());
  const at::Tensor all = at::empty({communicator.size(), 2}, at::kDouble);
  communicator.all_gather_into(all.view({-1}), mine, {Phase::other});
  StepMetrics metrics;
  for (int r = 0; r < communicator.size(); ++r) {
    metrics.loss += all[r][0].item<double>();
    metrics.peak_bytes = std::max(metrics.peak_bytes, std::int64_t(all[r][1].item<double>()));
  }
  if (!std::isfinite(metrics.loss) && !loss_scale_) throw Error(text("step ", step + 1, ": the loss is ", metrics.loss));

  const std::int64_t interval = config_.training.validation_interval;
  if (data_.validation && interval > 0 && ((step + 1) % interval == 0 || step + 1 == steps_)) metrics.validation_loss = validation_loss();

  metrics.step = step + 1;
  metrics.grad_norm = norm;
  metrics.lr = learning_rate(schedule_, step);
  metrics.tokens = tokens_;
  metrics.trained_tokens = trained_tokens_;
  metrics.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  metrics.tokens_per_second = double(tokens_ - last_tokens_) / std::max(1e-9, metrics.seconds - last_seconds_);
  if (loss_scale_) {
    metrics.skipped = loss_scale_->skipped_steps();
    metrics.loss_scale = loss_scale_->scale();
  }
  const bool due = (step + 1) % config_.metrics.log_interval == 0 || step + 1 == steps_ || metrics.validation_loss;
  if (records_.metrics && due) records_.metrics->write(metrics);
  if (records_.progress) records_.progress->show(metrics);
  if (due) {
    last_seconds_ = metrics.seconds;
    last_tokens_ = tokens_;
  }
}

}  // namespace zero
