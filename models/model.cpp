#include "models/model.h"

#include <ATen/ops/empty.h>

namespace zero {

std::int64_t Model::numel() const {
  std::int64_t n = 0;
  for (const auto& unit : units)
    for (const Parameter& parameter : unit->parameters()) n += parameter.numel();
  return n;
}

std::int64_t Model::trainable_numel() const {
  std::int64_t n = 0;
  for (const auto& unit : units)
    for (const Parameter& parameter : unit->parameters())
      if (parameter.trainable) n += parameter.numel();
  return n;
}

void hold_parameters(Model& model, at::ScalarType type, at::Device device) {
  for (const auto& unit : model.units)
    for (Parameter& parameter : unit->parameters())
      parameter.tensor = at::empty(parameter.shape(), at::TensorOptions().dtype(type).device(device));
  for (const auto& unit : model.units)
    for (BorrowedParameter& borrowed : unit->borrowed())
      borrowed.tensor = model.units[borrowed.owner_unit]->parameters()[borrowed.owner_parameter].tensor.detach();
}

}  // namespace zero
