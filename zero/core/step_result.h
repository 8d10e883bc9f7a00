#pragma once
// PendingStepResult: what a step found, for the host to read when it wants to. On the CPU it is there at once; on a GPU
// it is on its way to pinned memory, and the host that reads it a step later waits for nothing.
#include <ATen/core/Tensor.h>

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "comm/failure_handling.h"
#include "comm/stream.h"

namespace zero {

struct StepResult {
  std::vector<double> losses;  // of this rank's tokens, in parts: of each micro-batch, or one
  double norm = 0;             // of the gradients, without the loss scale
  bool taken = true;           // false: a gradient was not finite, and nothing was updated
  std::vector<std::pair<std::string, double>> optimizer;  // what optimizers tell of the step, by name

  double loss_sum() const { return std::accumulate(losses.begin(), losses.end(), 0.0); }
};

class PendingStepResult {
 public:
  explicit PendingStepResult(StepResult result) : result_(std::move(result)) {}
  /// `numbers`: StepNumbers in pinned memory, whole when `sent` is done. `failures`: of the collectives that they
  /// depend on.
  PendingStepResult(at::Tensor numbers, Event sent, const FailureHandling* failures)
      : numbers_(std::move(numbers)), sent_(std::move(sent)), failures_(failures) {}

  /// Throws what went wrong in the step's collectives.
  StepResult wait();

 private:
  StepResult result_;
  at::Tensor numbers_;  // undefined: the result is there
  Event sent_;
  const FailureHandling* failures_ = nullptr;
};

}  // namespace zero
