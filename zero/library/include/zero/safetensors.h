#pragma once
// Reads and writes named tensors as a .safetensors file, the format of Hugging Face's libraries.
#include <torch/nn/module.h>
#include <torch/types.h>

#include <map>
#include <string>

namespace zero {

/// Sorted by name.
using NamedTensors = std::map<std::string, torch::Tensor>;

/// Writes the file atomically: it appears complete or not at all. Throws for types that the format lacks.
void write_safetensors(const std::string& path, const NamedTensors& tensors);

/// Reads all tensors into host memory. Throws InputError that names the file, the tensor and the violated rule of the
/// format.
NamedTensors read_safetensors(const std::string& path);

/// Loads parameters and buffers into a module that is not sharded, and converts values to their types. Throws
/// InputError that names a tensor that one side lacks or whose shape differs; the module is then unchanged.
void load_safetensors(torch::nn::Module& module, const std::string& path);

}  // namespace zero
