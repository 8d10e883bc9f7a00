#include "zero/train/observers/metrics_records.h"

#include <algorithm>

namespace zero {

void MetricsRecords::resumed(const RunPosition& position) {
  last_seconds_ = position.seconds;
  last_tokens_ = position.tokens;
}

void MetricsRecords::ask(StepRequests& mine, Pause pause) {
  if (pause == Pause::part_of_validation && records_.metrics) records_.metrics->touch();
  if (pause == Pause::step || pause == Pause::step_before_validation)
    mine.peak_bytes = engine_.device().is_cpu() ? tracker_.peak() : engine_.peak_device_bytes();
}

void MetricsRecords::figures_known(Step& step) {
  if (step.passed_over) last_tokens_ += step.input_tokens;  // a step without computation has no rate
  StepMetrics& metrics = step.metrics;
  metrics.tokens_per_second = double(metrics.tokens - last_tokens_) / std::max(1e-9, metrics.seconds - last_seconds_);
}

void MetricsRecords::step_finished(const Step& step) {
  const StepMetrics& metrics = step.metrics;
  const bool due = metrics.step % config_.metrics.log_interval == 0 || metrics.step == loop_.steps() ||
                   step.validated || step.passed;
  if (!due) return;
  if (records_.metrics) records_.metrics->write(metrics);
  last_seconds_ = metrics.seconds;
  last_tokens_ = metrics.tokens;
}

void MetricsRecords::went_back(const RunPosition& position) {
  last_seconds_ = loop_.seconds();
  last_tokens_ = position.tokens;
  if (records_.metrics) records_.metrics->cut_after(position.steps);
}

void MetricsRecords::add_to(RunPosition& position) const {
  if (records_.metrics) position.unwritten_records = records_.metrics->waiting();
}

}  // namespace zero
