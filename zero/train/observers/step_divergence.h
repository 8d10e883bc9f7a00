#pragma once
// StepDivergence: computes KTO's divergence before each step, from mismatched answers of the step's rows.
#include "zero/train/divergence.h"
#include "zero/train/step_loop.h"
#include "zero/train/step_observer.h"
#include "zero/train/training_batches.h"

namespace zero {

/// Must come before observers that read the step's batches.
class StepDivergence final : public StepObserver {
 public:
  /// `mismatched` has the order of the training rows. All of these must outlive the observer.
  StepDivergence(Engine& engine, TrainingBatches& batches, Loader& mismatched)
      : engine_(engine), batches_(batches), mismatched_(mismatched) {}

  void before_step(Step& step) override;

 private:
  Engine& engine_;
  TrainingBatches& batches_;
  Loader& mismatched_;
};

}  // namespace zero
