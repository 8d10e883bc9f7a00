#include "zero/core/step_result.h"

#include <ATen/ATen.h>

#include "zero/optim/kernels/device_step.h"

namespace zero {

StepResult PendingStepResult::wait() {
  if (!numbers_.defined()) return result_;
  sent_.wait_on_host();
  failures_->check();
  const double* at = numbers_.const_data_ptr<double>();
  result_ = {{at[StepNumbers::loss]}, at[StepNumbers::norm], at[StepNumbers::finite] != 0, {}};
  numbers_ = at::Tensor();
  return result_;
}

}  // namespace zero
