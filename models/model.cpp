#include "models/model.h"

#include <ATen/ops/empty.h>

namespace zero {

namespace {

std::int64_t full_numel(const Parameter& parameter) {
  std::int64_t n = 0;
  for (const TensorSpec& part : parameter.parts) n += part.full().numel();
  return n;
}

}  // namespace

std::int64_t Model::numel() const {
  std::int64_t n = 0;
  for (const auto& unit : units)
    for (const Parameter& parameter : unit->parameters()) n += full_numel(parameter);
  return n;
}

std::int64_t Model::trainable_numel() const {
  std::int64_t n = 0;
  for (const auto& unit : units)
    for (const Parameter& parameter : unit->parameters())
      if (parameter.trainable) n += full_numel(parameter);
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
