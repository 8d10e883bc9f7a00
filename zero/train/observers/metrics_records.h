#pragma once
// MetricsRecords: writes a line of metrics.jsonl when a step ends.
#include "base/memory_tracker.h"
#include "zero/train/run_records.h"
#include "zero/train/step_loop.h"

namespace zero {

/// Exists on all ranks, because all report their memory.
class MetricsRecords final : public StepObserver {
 public:
  /// All of these must outlive the observer.
  MetricsRecords(const Config& config, const StepLoop& loop, const Engine& engine, const MemoryTracker& tracker,
                 RunRecords& records)
      : config_(config), loop_(loop), engine_(engine), tracker_(tracker), records_(records) {}

  void resumed(const RunPosition& position) override;
  void ask(StepRequests& mine, Pause pause) override;
  void figures_known(Step& step) override;
  void step_finished(const Step& step) override;
  void went_back(const RunPosition& position) override;
  void add_to(RunPosition& position) const override;

 private:
  bool is_logged(const Step& step) const { return step.is_logged(config_.metrics.log_interval, loop_.steps()); }

  const Config& config_;
  const StepLoop& loop_;
  const Engine& engine_;
  const MemoryTracker& tracker_;
  RunRecords& records_;
  // Rates are measured since the last line.
  double last_seconds_ = 0;
  std::int64_t last_tokens_ = 0;
};

}  // namespace zero
