#pragma once
// Checks if llama.cpp computes a model exactly as this project does (GgufArchitecture). Does not include LibTorch.
#include <cstdint>
#include <optional>
#include <string>

#include "models/families/family.h"
#include "models/model_config.h"

namespace zero {

/// Throws InputError, with family, reason and remedy, for a model that llama.cpp would compute differently. Reasons are
/// a family that llama.cpp lacks, and windows, ropes, biases, activations, head sizes or scales that it does not
/// support.
void check_gguf(const ModelConfig& config);

/// Returns the family if its GgufArchitecture is known. Throws InputError otherwise.
const Family& gguf_family(const std::string& model_type);
const Family& require_gguf(const Family& family);

/// Returns n if all layers but every n-th have a sliding window. Returns nothing if the layers have no such pattern, or
/// no layer slides.
std::optional<std::int64_t> window_pattern(const ModelConfig& config);

}  // namespace zero
