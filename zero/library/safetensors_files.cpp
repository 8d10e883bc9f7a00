#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <sstream>

#include "base/error.h"
#include "models/formats/safetensors.h"
#include "models/formats/safetensors_writer.h"
#include "zero/library/include/zero/safetensors.h"

namespace zero {
namespace {

std::string shape_of(const at::Tensor& tensor) {
  std::ostringstream out;
  out << tensor.sizes();
  return out.str();
}

/// Defined parameters and buffers.
NamedTensors tensors_of(const torch::nn::Module& module) {
  NamedTensors tensors;
  for (const auto& item : module.named_parameters())
    if (item.value().defined()) tensors.emplace(item.key(), item.value());
  for (const auto& item : module.named_buffers())
    if (item.value().defined()) tensors.emplace(item.key(), item.value());
  return tensors;
}

void check_same(const NamedTensors& wanted, const NamedTensors& found, const std::string& path) {
  for (const auto& [name, tensor] : wanted) {
    const auto other = found.find(name);
    if (other == found.end()) throw InputError(path + ": has no " + name + ", which the module has");
    if (other->second.sizes() != tensor.sizes())
      throw InputError(path + ": " + name + " is of shape " + shape_of(other->second) + ", the module's of " +
                       shape_of(tensor));
  }
  for (const auto& [name, tensor] : found)
    if (wanted.find(name) == wanted.end())
      throw InputError(path + ": has " + name + ", which the module does not have");
}

}  // namespace

void write_safetensors(const std::string& path, const NamedTensors& tensors) {
  std::vector<SafetensorsSpec> specs;
  for (const auto& [name, tensor] : tensors) specs.push_back({name, tensor.scalar_type(), tensor.sizes().vec()});
  SafetensorsWriter writer(path, std::move(specs));
  for (const auto& [name, tensor] : tensors) writer.append(tensor.detach().cpu().contiguous().view({-1}));
  writer.finish();
}

NamedTensors read_safetensors(const std::string& path) {
  const SafetensorsFile file(path);
  NamedTensors tensors;
  for (const StoredTensor& stored : file.tensors()) tensors.emplace(stored.name, file.read(stored.name));
  return tensors;
}

void load_safetensors(torch::nn::Module& module, const std::string& path) {
  const NamedTensors wanted = tensors_of(module), found = read_safetensors(path);
  check_same(wanted, found, path);
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : wanted) at::Tensor(tensor).copy_(found.at(name));
}

}  // namespace zero
