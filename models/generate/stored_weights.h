#pragma once
// Loads a model for generation. Matrices that a GGUF file stores in fewer bits than the arithmetic has are held as
// stored, so memory and speed follow the file's size.
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/numbers/ggml_type.h"
#include "models/model.h"
#include "models/weight_source.h"

namespace zero {

/// The ggml type in which a tensor can be read as stored (WeightSource::read_as); none: only its values can be read.
/// An empty function stands for a source without such types.
using StoredTypeOf = std::function<std::optional<GgmlType>(const TensorSpec&)>;

/// The form and the size of a loaded model's weights.
struct HeldWeights {
  std::vector<GgmlType> types;  // of matrices held as stored, each once
  std::int64_t stored = 0;      // elements held as stored
  std::int64_t bytes = 0;       // of all parameters
};

/// Holds and fills every parameter of the model on the CPU. A parameter is held as stored (models/ops/packed_matrix.h)
/// if all its parts can be, in fewer bytes than in `type`. All others are converted to `type`, fp32 or bf16.
HeldWeights load_as_stored(Model& model, at::ScalarType type, WeightSource& weights, const StoredTypeOf& stored_type);

/// "as stored (Q4_K, Q6_K), 638 MiB", or "in bf16, 2098 MiB", for the log. `type` is the name of the other weights'.
std::string description(const HeldWeights& held, const std::string& type);

}  // namespace zero
