#include "zero/train/observers/tensorboard_events.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"

namespace zero {

TensorBoardEvents::TensorBoardEvents(const Config& config, const StepLoop& loop, RunRecords& records)
    : config_(config), loop_(loop), records_(records) {
  if (records.metrics && config.metrics.tensorboard) files_.emplace(config.job.output_dir + "/tb");
}

void TensorBoardEvents::resumed(const RunPosition& position) {
  resumed_ = true;
  if (!files_) return;
  const std::int64_t held = std::min(files_->last_step(), position.steps);
  files_->begin_after(held);
  try {
    SamplesByStep samples = samples_after(samples_path(config_.job.output_dir), held);
    records_.metrics->visit_after(held, [&](const StepMetrics& line) { files_->write(line, samples[line.step]); });
  } catch (const Error& error) {
    log_warning("TensorBoard will miss steps after ", held, " and up to ", position.steps, ": ", error.what());
  }
}

void TensorBoardEvents::run_begins() {
  if (files_ && !resumed_) files_->begin_after(0);
}

void TensorBoardEvents::step_finished(const Step& step) {
  if (files_ && step.is_logged(config_.metrics.log_interval, loop_.steps())) files_->write(step.metrics, step.samples);
}

void TensorBoardEvents::went_back(const RunPosition& position) {
  if (files_) files_->begin_after(position.steps);
}

}  // namespace zero
