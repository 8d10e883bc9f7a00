#include "models/generate/stored_weights.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

#include "base/log.h"
#include "models/ops/huge_pages.h"
#include "models/ops/packed_matrix.h"

namespace zero {
namespace {

using StoredRows = std::vector<PackedMatrix::Rows>;

/// The rows of a parameter, without their bytes; none if the parameter is to be converted.
std::optional<StoredRows> stored_rows(const Parameter& parameter, at::ScalarType type,
                                      const StoredTypeOf& stored_type) {
  if (!stored_type || parameter.input_first) return std::nullopt;
  StoredRows rows;
  std::int64_t bytes = 0;
  for (const TensorSpec& part : parameter.parts) {
    if (part.shape.size() != 2) return std::nullopt;
    const auto stored = stored_type(part);
    if (!stored || !PackedMatrix::can_hold(*stored, part.shape[1])) return std::nullopt;
    bytes += PackedMatrix::bytes(*stored, part.shape[0], part.shape[1]);
    rows.push_back({*stored, part.shape[0], {}});
  }
  if (bytes >= parameter.numel() * static_cast<std::int64_t>(c10::elementSize(type))) return std::nullopt;
  return rows;
}

at::Tensor read_stored(const Parameter& parameter, StoredRows rows, at::ScalarType type, WeightSource& weights,
                       HeldWeights& held) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const TensorSpec& part = parameter.parts[i];
    rows[i].bytes = empty_in_huge_pages({ggml_bytes(rows[i].type, part.numel())}, at::kByte);
    weights.read_as(part, rows[i].type, 0, part.numel(), rows[i].bytes);
    held.bytes += PackedMatrix::bytes(rows[i].type, part.shape[0], part.shape[1]);
    if (std::find(held.types.begin(), held.types.end(), rows[i].type) == held.types.end())
      held.types.push_back(rows[i].type);
  }
  held.stored += parameter.numel();
  return PackedMatrix::tensor(std::move(rows), parameter.parts.front().shape[1], type);
}

at::Tensor read_values(const Parameter& parameter, at::ScalarType type, WeightSource& weights, HeldWeights& held) {
  const at::Tensor values = empty_in_huge_pages(parameter.shape(), type), flat = values.view({-1});
  std::int64_t begin = 0;
  for (const TensorSpec& part : parameter.parts) {
    weights.read(part, 0, part.numel(), flat.narrow(0, begin, part.numel()));
    begin += part.numel();
  }
  held.bytes += static_cast<std::int64_t>(values.nbytes());
  return values;
}

}  // namespace

HeldWeights load_as_stored(Model& model, at::ScalarType type, WeightSource& weights, const StoredTypeOf& stored_type) {
  weights.check(tensors_of(model));
  weights.check_values();
  HeldWeights held;
  for (const auto& unit : model.units)
    for (Parameter& parameter : unit->parameters()) {
      auto rows = stored_rows(parameter, type, stored_type);
      parameter.tensor = rows ? read_stored(parameter, std::move(*rows), type, weights, held)
                              : read_values(parameter, type, weights, held);
    }
  for (const auto& unit : model.units)
    for (BorrowedParameter& borrowed : unit->borrowed())
      borrowed.tensor = model.units[borrowed.owner_unit]->parameters()[borrowed.owner_parameter].tensor.detach();
  return held;
}

std::string description(const HeldWeights& held, const std::string& type) {
  std::string names;
  for (const GgmlType each : held.types) names += (names.empty() ? "" : ", ") + std::string(ggml_name(each));
  const std::string size = text(", ", (held.bytes + (1 << 19)) >> 20, " MiB");
  return held.stored > 0 ? text("as stored (", names, "; arithmetic in ", type, ")", size) : "in " + type + size;
}

}  // namespace zero
