#pragma once
// Reads and writes named tensors as a .safetensors file, the format of Hugging Face's libraries.
#include <torch/nn/module.h>
#include <torch/types.h>

#include <map>
#include <string>

namespace zero {

/// Sorted by name.
using NamedTensors = std::map<std::string, torch::Tensor>;

/// The file appears whole or not at all. Refuses types that the format lacks.
void write_safetensors(const std::string& path, const NamedTensors& tensors);

/// Reads all tensors into host memory. InputError names the file, the tensor and the rule.
NamedTensors read_safetensors(const std::string& path);

/// Loads parameters and buffers of a module that is not sharded, converted to their types. InputError names a tensor
/// that one side lacks or whose shape differs; nothing has changed then.
void load_safetensors(torch::nn::Module& module, const std::string& path);

}  // namespace zero
