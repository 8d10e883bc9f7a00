#pragma once
// Checks whether llama.cpp computes a model as it is, by the facts of its architecture for the family. No LibTorch.
#include <cstdint>
#include <optional>
#include <string>

#include "models/families/family.h"
#include "models/model_config.h"

namespace zero {

/// Throws InputError, with family, reason and remedy, for a model that llama.cpp would compute differently. Reasons are
/// a family without an architecture there, and windows, ropes, biases, activations, head sizes or scales that it lacks.
void check_gguf(const ModelConfig& config);

/// The family, if its form in llama.cpp is known here. Throws InputError otherwise.
const Family& gguf_family(const std::string& model_type);
const Family& require_gguf(const Family& family);

/// n, if all layers but every n-th slide over a window. Nothing if the layers have no such order, or none slides.
std::optional<std::int64_t> window_pattern(const ModelConfig& config);

}  // namespace zero
