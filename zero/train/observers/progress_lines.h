#pragma once
// ProgressLines: shows the steps of a run on standard output as they end.
#include "zero/train/run_records.h"
#include "zero/train/step_observer.h"

namespace zero {

class ProgressLines final : public StepObserver {
 public:
  /// The records must outlive the observer.
  explicit ProgressLines(RunRecords& records) : records_(records) {}

  void step_finished(const Step& step) override {
    if (records_.progress) records_.progress->show(step.metrics);
  }
  void run_ends() override { records_.end_line(); }

 private:
  RunRecords& records_;
};

}  // namespace zero
