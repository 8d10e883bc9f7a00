#include "zero/modules/module_weights.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "base/error.h"
#include "zero/core/buffers/flat_storage.h"

namespace zero {

ModuleWeights::ModuleWeights(const ModuleUnits& units) {
  const at::NoGradGuard no_grad;
  for (const ModuleUnits::Named& parameter : units.parameters())
    values_.emplace(parameter.name, parameter.tensor.variable_data());
}

void ModuleWeights::give_back(const ModuleUnits& units) const {
  for (ModuleUnits::Named parameter : units.parameters()) point_at(parameter.tensor, values_.at(parameter.name));
}

void ModuleWeights::check(const std::vector<TensorSpec>& tensors) {
  for (const TensorSpec& tensor : tensors) {
    const auto found = values_.find(tensor.name);
    if (found == values_.end()) throw InputError("the module has no parameter " + tensor.name);
    if (found->second.sizes() != at::IntArrayRef(tensor.shape))
      throw InputError("parameter " + tensor.name + " has another shape in the module");
  }
}

void ModuleWeights::read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) {
  const at::NoGradGuard no_grad;
  // reshape() copies a tensor with strides, one tensor at a time.
  out.copy_(values_.at(tensor.name).reshape({-1}).narrow(0, begin, count));
}

}  // namespace zero
