#include "zero/modules/deferred_weights.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "base/error.h"
#include "base/random.h"
#include "zero/core/buffers/flat_storage.h"

namespace zero {

DeferredWeights::DeferredWeights(const torch::nn::Module& module, const ModuleUnits& units, std::uint64_t seed)
    : seed_(seed) {
  for (const ModuleUnits::Named& parameter : units.parameters())
    if (parameter.name == parameter.first_name)
      parameters_.emplace(parameter.name, deferred("parameter " + parameter.name, parameter.tensor));
  for (const auto& buffer : module.named_buffers())
    if (buffer.value().defined() && buffer.value().is_meta())
      buffers_.emplace(buffer.key(), deferred("buffer " + buffer.key(), buffer.value()));
}

DeferredWeights::Deferred DeferredWeights::deferred(const std::string& what, const at::Tensor& tensor) {
  auto tape = DeferredTape::of(tensor);
  if (!tape)
    throw InputError(what +
                     " is on Meta and has no values: build the module inside zero::deferred(), or call "
                     "model.load(path) before model.optimizer() and the first forward");
  if (std::ranges::find(tapes_, tape) == tapes_.end()) tapes_.push_back(tape);
  return {tape.get(), DeferredTape::tensor_of(tensor)};
}

// Each tape draws different numbers.
at::Tensor DeferredWeights::values(const Deferred& tensor) const {
  const auto tape = std::ranges::find_if(tapes_, [&](const auto& one) { return one.get() == tensor.tape; });
  return tensor.tape->values(tensor.tensor, std::uint32_t(mix_seed(seed_, std::uint64_t(tape - tapes_.begin()))));
}

void DeferredWeights::read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) {
  const at::NoGradGuard no_grad;
  if (name_ != tensor.name || !values_.defined()) {
    values_.reset();  // free it before computing the next one
    values_ = values(parameters_.at(tensor.name)).reshape({-1});
    name_ = tensor.name;
  }
  out.copy_(values_.narrow(0, begin, count));
}

void DeferredWeights::fill_buffers(const torch::nn::Module& module, at::Device device) const {
  for (const auto& buffer : module.named_buffers())
    if (const auto found = buffers_.find(buffer.key()); found != buffers_.end())
      point_at(buffer.value(), values(found->second).to(device));
}

}  // namespace zero
