#pragma once
// Tensors by name as one .safetensors file, the format in which Hugging Face's libraries keep weights.
#include <torch/nn/module.h>
#include <torch/types.h>

#include <map>
#include <string>

namespace zero {

/// In the order of their names.
using NamedTensors = std::map<std::string, torch::Tensor>;

/// The file is whole or not there. Types that the format does not know are refused.
void write_safetensors(const std::string& path, const NamedTensors& tensors);

/// All tensors, in host memory. InputError names the file, the tensor and the rule.
NamedTensors read_safetensors(const std::string& path);

/// Parameters and buffers of a module that is not sharded (yet), converted to their types. InputError names a tensor that
/// one side lacks or whose shape differs; then nothing was changed.
void load_safetensors(torch::nn::Module& module, const std::string& path);

}  // namespace zero
