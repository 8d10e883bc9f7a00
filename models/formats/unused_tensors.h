#pragma once
// How to treat tensors in a model's file that are never read. Does not include LibTorch.
#include <cstdint>
#include <string>
#include <vector>

#include "models/decoder/decoder_names.h"

namespace zero {

/// How to treat a tensor that belongs to the model's modules but is never read.
enum class UnusedTensors : std::uint8_t { refuse, allow };

/// True if a tensor is part of a module of the decoder: a bias, a scale, a norm, an extra layer, an unmerged adapter.
/// False for value heads, position ids and heads that predict further tokens. A name may lack its first part
/// ("model."), or have a wrapper's prefix ("module.").
bool belongs_to_decoder(const std::string& tensor, const DecoderNames& names);

/// True if transformers computes the tensor and ignores the stored one: a rope's frequencies, a mask of GPT-2.
bool is_computed(const std::string& tensor);

/// Throws InputError for tensors that belong to the model, unless `rule` allows them. Logs all others.
void settle_unused(const std::string& path, const std::vector<std::string>& of_the_model,
                   const std::vector<std::string>& others, UnusedTensors rule);

}  // namespace zero
