#pragma once
// Step: one step of a run, from its plan to its figures.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/loss_terms.h"
#include "zero/checkpoint/manifest.h"
#include "zero/core/step_result.h"
#include "zero/train/metrics.h"

namespace zero {

struct Step {
  std::int64_t index = 0;                             // from 0; messages and records count from 1
  std::int64_t input_tokens = 0, trained_tokens = 0;  // of this step, over all ranks
  double denominator = 1;                             // of its loss, over all ranks

  // The plan, which observers may change before the step begins.
  double loss_scale = 1;      // gradients carry it
  bool passed_over = false;   // nothing is computed
  bool read_at_once = false;  // its result is read before the next step begins, on a GPU too
  bool validates = false;     // its figures wait for a validation

  // The result.
  std::vector<at::Tensor> losses;  // of this rank's micro-batches, not divided
  LossFigures figures;             // of this rank's micro-batches, not divided
  StepResult result;
  RunPosition after;       // if the step was taken: where the run stands then, without what a checkpoint adds
  bool passed = false;     // training.on_nonfinite skipped it, or it was passed over
  StepMetrics metrics;     // complete when observers hear of the finished step
  bool validated = false;  // it was told after its validation, or after one that is left out
};

}  // namespace zero
