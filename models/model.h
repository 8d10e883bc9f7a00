#pragma once
// Model: a chain of units with their configuration.
#include <memory>
#include <vector>

#include "models/model_config.h"
#include "models/unit.h"

namespace zero {

struct Model {
  ModelConfig config;
  std::vector<std::unique_ptr<Unit>> units;  // embedding, blocks, head

  /// The number of elements of all parameters. Each counts once. A slice counts as its full tensor.
  std::int64_t numel() const;
  std::int64_t trainable_numel() const;
};

/// Allocates every parameter in full, in one type on one device, for inference and tests. Does not fill them.
void hold_parameters(Model& model, at::ScalarType type, at::Device device = at::kCPU);

}  // namespace zero
