#pragma once
// Whether llama.cpp computes a model as it is: by what its architecture for the family does. No LibTorch.
#include <cstdint>
#include <optional>
#include <string>

#include "models/families/family.h"
#include "models/model_config.h"

namespace zero {

/// InputError, with family, reason and remedy, for a model that llama.cpp would compute otherwise: a family without an
/// architecture there, windows, ropes, biases, activations, head sizes or scales that it does not have.
void check_gguf(const ModelConfig& config);

/// The family, whose form in llama.cpp is known here. InputError otherwise.
const Family& gguf_family(const std::string& model_type);
const Family& require_gguf(const Family& family);

/// n, where all layers but every n-th slide over a window; nothing where the layers have no such order, or none slides.
std::optional<std::int64_t> window_pattern(const ModelConfig& config);

}  // namespace zero
