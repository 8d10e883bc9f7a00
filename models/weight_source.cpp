#include "models/weight_source.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "models/ggml_values.h"
#include "models/model.h"

namespace zero {

void WeightSource::read_as(const TensorSpec& tensor, GgmlType type, std::int64_t begin, std::int64_t count,
                           const at::Tensor& out) {
  const at::Tensor values = at::empty({count}, at::kFloat);
  read(tensor, begin, count, values);
  if (!values.isfinite().all().item<bool>())
    throw InputError(tensor.name + ": holds values that are not finite, which blocks of 4 or 8 bits cannot hold");
  to_ggml(values, type, out.data_ptr<std::uint8_t>());
}

std::vector<TensorSpec> tensors_of(const Model& model) {
  std::vector<TensorSpec> all;
  for (const auto& unit : model.units)
    for (const auto& parameter : unit->parameters())
      for (const TensorSpec& part : parameter.parts) all.push_back(part.full());
  return all;
}

void load_parameters(Model& model, WeightSource& weights) {
  weights.check(tensors_of(model));
  weights.check_values();
  for (const auto& unit : model.units)
    for (const auto& parameter : unit->parameters()) {
      ZERO_CHECK(parameter.tensor.defined() && parameter.tensor.is_contiguous(),
                 unit->name() + ": parameters are not held");
      const at::Tensor flat = parameter.tensor.detach().view({-1});
      std::int64_t begin = 0;
      for (const auto& part : parameter.parts) {
        weights.read(part, 0, part.numel(), flat.narrow(0, begin, part.numel()));
        begin += part.numel();
      }
    }
}

}  // namespace zero
