#pragma once
// PendingStep: what a step found, for the host to read when it wants to. On the CPU it is there at once; on a GPU it is
// on its way to pinned memory, and the host that reads it a step later waits for nothing.
#include <ATen/core/Tensor.h>

#include "comm/communicator.h"
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
  /// `numbers`: StepNumbers in pinned memory, whole when `sent` is done. `communicator`: whose failure makes them
  /// worthless.
  PendingStep(at::Tensor numbers, Event sent, const Communicator* communicator)
      : numbers_(std::move(numbers)), sent_(std::move(sent)), communicator_(communicator) {}

  /// Throws what went wrong in the step's collectives.
  StepFindings wait();

 private:
  StepFindings findings_;
  at::Tensor numbers_;  // undefined: the findings are there
  Event sent_;
  const Communicator* communicator_ = nullptr;
};

}  // namespace zero
