#pragma once
// PendingStepResult: what a step found, for the host to read when it wants to. On the CPU it is there at once; on a GPU
// it is on its way to pinned memory, and the host that reads it a step later waits for nothing.
#include <ATen/core/Tensor.h>

#include "comm/failure_handling.h"
#include "comm/stream.h"

namespace zero {

struct StepResult {
  double loss_sum = 0;  // of this rank's tokens
  double norm = 0;      // of the gradients, without the loss scale
  bool taken = true;    // false: a gradient was not finite, and nothing was updated
};

class PendingStepResult {
 public:
  explicit PendingStepResult(const StepResult& result) : result_(result) {}
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
