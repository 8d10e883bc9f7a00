#include "zero/checkpoint/saved_weights.h"

#include <ATen/ATen.h>

#include <map>

#include "base/error.h"

namespace zero {

void SavedWeights::check(const std::vector<TensorSpec>& tensors) {
  std::map<std::string, std::vector<std::int64_t>> stored;
  for (const TensorSpec& spec : states_->tensors()) stored[spec.name] = spec.shape;
  for (const TensorSpec& spec : tensors) {
    const auto found = stored.find(model_ + spec.name);
    if (found == stored.end() || found->second != spec.shape)
      throw InputError(states_->folder() + ": holds no " + model_ + spec.name + " of the model's shape");
  }
}

void SavedWeights::read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) {
  const std::string name = model_ + tensor.name;
  if (!states_->holds(name)) throw Error(states_->folder() + ": holds no " + name);
  const StateSpec& weights = states_->states_of(name).front();
  const at::Tensor values =
      out.scalar_type() == weights.type && out.is_contiguous() ? out : at::empty({count}, weights.type);
  states_->read(name, begin, count, {{weights, values.data_ptr()}});
  if (!values.is_same(out)) out.view({-1}).copy_(values);
}

}  // namespace zero
