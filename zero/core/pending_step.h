#pragma once
// PendingStep: what a step found, for the host to read when it wants to. On the CPU it is there at once; on a GPU it is
// on its way to pinned memory, and the host that reads it a step later waits for nothing.
#include <ATen/core/Tensor.h>

#include "comm/failure_handling.h"
#include "comm/stream.h"

namespace zero {

struct StepFindings {
  double loss_sum = 0;  // of this rank's tokens
  double norm = 0;      // of the gradients, without the loss scale
  bool taken = true;    // false: a gradient was not finite, and nothing was updated
};

class PendingStep {
 public:
  explicit PendingStep(const StepFindings& findings) : findings_(findings) {}
  /// `numbers`: StepNumbers in pinned memory, whole when `sent` is done. `failures`: of the collectives that they
  /// depend on.
  PendingStep(at::Tensor numbers, Event sent, const FailureHandling* failures)
      : numbers_(std::move(numbers)), sent_(std::move(sent)), failures_(failures) {}

  /// Throws what went wrong in the step's collectives.
  StepFindings wait();

 private:
  StepFindings findings_;
  at::Tensor numbers_;  // undefined: the findings are there
  Event sent_;
  const FailureHandling* failures_ = nullptr;
};

}  // namespace zero
