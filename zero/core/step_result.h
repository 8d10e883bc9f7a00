#pragma once
// PendingStepResult: the result of a step, for the host to read later. On the CPU it is ready at once. On a GPU it is
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
  std::vector<std::pair<std::string, double>> optimizer;  // figures of optimizers, by name

  double loss_sum() const { return std::accumulate(losses.begin(), losses.end(), 0.0); }
};

class PendingStepResult {
 public:
  explicit PendingStepResult(StepResult result) : result_(std::move(result)) {}
  /// `numbers`: StepNumbers in pinned memory, complete when `sent` is done. `failures`: those of the collectives behind
  /// the numbers.
  PendingStepResult(at::Tensor numbers, Event sent, const FailureHandling* failures)
      : numbers_(std::move(numbers)), sent_(std::move(sent)), failures_(failures) {}

  /// Throws the failure of the step's collectives, if there was one.
  StepResult wait();

 private:
  StepResult result_;
  at::Tensor numbers_;  // undefined: the result is ready
  Event sent_;
  const FailureHandling* failures_ = nullptr;
};

}  // namespace zero
