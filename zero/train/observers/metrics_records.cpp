#include "zero/train/observers/metrics_records.h"

#include <algorithm>
#include <cstdlib>

#include "offload/memory/node_memory.h"

namespace zero {
namespace {

void add_host(StepMetrics& metrics) {
  const NodeMemory memory = node_memory();
  if (memory.available >= 0) metrics.host_available_bytes = memory.available;
  if (memory.used >= 0) metrics.host_used_bytes = memory.used;
  if (double load = 0; ::getloadavg(&load, 1) == 1) metrics.load_average = load;
}

}  // namespace

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
  if (records_.metrics && is_logged(step)) add_host(metrics);
}

void MetricsRecords::step_finished(const Step& step) {
  const StepMetrics& metrics = step.metrics;
  if (!is_logged(step)) return;
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
