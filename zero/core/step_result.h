#pragma once
// PendingStepResult: the result of a step, which the host reads later. On the CPU it is ready at once. On a GPU it is
// copied to pinned memory, and a host that reads it one step later does not wait.
#include <ATen/core/Tensor.h>

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "comm/failure_handling.h"
#include "comm/stream.h"

namespace zero {

struct StepResult {
  std::vector<double> losses;  // sums over this rank's tokens: one for each micro-batch, or one
  double norm = 0;             // of the gradients, without the loss scale
  bool taken = true;           // false: a gradient was not finite, and nothing was updated
  std::vector<std::pair<std::string, double>> optimizer;  // metrics of optimizers, by name

  double loss_sum() const { return std::accumulate(losses.begin(), losses.end(), 0.0); }
};

class PendingStepResult {
 public:
  explicit PendingStepResult(StepResult result) : result_(std::move(result)) {}
  /// `numbers`: StepNumbers in pinned memory, complete when `sent` is done. `failures`: the failure handling of the
  /// collectives that produce the numbers.
  PendingStepResult(at::Tensor numbers, Event sent, const FailureHandling* failures)
      : numbers_(std::move(numbers)), sent_(std::move(sent)), failures_(failures) {}

  /// Waits for the result and returns it. If one of the step's collectives failed, throws that failure.
  StepResult wait();

 private:
  StepResult result_;
  at::Tensor numbers_;  // undefined: the result is ready
  Event sent_;
  const FailureHandling* failures_ = nullptr;
};

}  // namespace zero
