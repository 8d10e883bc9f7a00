#include <ATen/ATen.h>

#include <cmath>

#include "zero/optim/kernels/device_step.h"

namespace zero {

at::Tensor step_numbers(const StepFactors& factors) {
  const auto steps = static_cast<double>(factors.step);
  at::Tensor numbers = at::zeros({StepNumbers::count}, at::kDouble);
  auto* const at = numbers.data_ptr<double>();
  at[StepNumbers::factor] = factors.gradient_scale;
  at[StepNumbers::steps] = steps;
  at[StepNumbers::finite] = 1;
  at[StepNumbers::bias1] = 1 - std::pow(factors.beta1, steps);
  at[StepNumbers::bias2_root] = std::sqrt(1 - std::pow(factors.beta2, steps));
  return numbers;
}

}  // namespace zero
