#pragma once
// Step: one step of a run, from its plan to its metrics.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/loss_terms.h"
#include "zero/checkpoint/manifest.h"
#include "zero/core/step_result.h"
#include "zero/output/sample_lines.h"
#include "zero/train/metrics.h"

namespace zero {

struct Step {
  std::int64_t index = 0;                             // from 0; messages and records count from 1
  std::int64_t input_tokens = 0, trained_tokens = 0;  // over all ranks
  double denominator = 1;                             // of the step's loss, over all ranks

  // The plan. Observers may change it before the step begins.
  double loss_scale = 1;      // factor of loss and gradients
  bool passed_over = false;   // the step is skipped, and nothing is computed
  bool read_at_once = false;  // the result is read before the next step begins, on a GPU too
  bool validates = false;     // the metrics wait for a validation

  // The result.
  std::vector<at::Tensor> losses;  // sums of this rank's micro-batches
  LossFigures figures;             // sums of this rank's micro-batches
  StepResult result;
  RunPosition after;            // position of the run if the step was taken, without the values that a checkpoint adds
  bool passed = false;          // the step was skipped, before or after it was computed
  StepMetrics metrics;          // complete in step_finished()
  bool validated = false;       // step_finished() followed a validation, even one that was dropped
  std::vector<Sample> samples;  // continued at the validation; rank 0's

  /// True if the records of a run of `steps` steps hold it, with `interval` steps between their lines. They hold the
  /// last step, and every step that was validated or skipped.
  bool is_logged(std::int64_t interval, std::int64_t steps) const {
    return metrics.step % interval == 0 || metrics.step == steps || validates || validated || passed;
  }
};

}  // namespace zero
