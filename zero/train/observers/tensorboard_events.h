#pragma once
// TensorBoardEvents: writes the figures and samples of logged steps to event files in tb/, for TensorBoard.
#include <optional>

#include "zero/train/records/event_files.h"
#include "zero/train/run_records.h"
#include "zero/train/step_loop.h"

namespace zero {

/// Runs after MetricsRecords, because steps that earlier starts of the program failed to write come from metrics.jsonl.
class TensorBoardEvents final : public StepObserver {
 public:
  /// Writes only on the rank with records, and only if metrics.tensorboard is set. Throws Error if the folder cannot be
  /// made, and InputError if event files of earlier starts cannot be read. The arguments must outlive the observer.
  TensorBoardEvents(const Config& config, const StepLoop& loop, RunRecords& records);

  void resumed(const RunPosition& position) override;
  void run_begins() override;
  void step_finished(const Step& step) override;
  void went_back(const RunPosition& position) override;

 private:
  const Config& config_;
  const StepLoop& loop_;
  RunRecords& records_;
  std::optional<EventFiles> files_;
  bool resumed_ = false;
};

}  // namespace zero
