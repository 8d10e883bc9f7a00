#include "zero/core/pending_step.h"

#include <ATen/ATen.h>

#include "offload/kernels/device_step.h"

namespace zero {

StepFindings PendingStep::wait() {
  if (!numbers_.defined()) return findings_;
  sent_.wait_on_host();
  failures_->check();
  const double* at = numbers_.const_data_ptr<double>();
  findings_ = {at[StepNumbers::loss], at[StepNumbers::norm], at[StepNumbers::finite] != 0};
  numbers_ = at::Tensor();
  return findings_;
}

}  // namespace zero
