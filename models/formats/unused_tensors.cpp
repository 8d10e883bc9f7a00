#include "models/formats/unused_tensors.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

/// "layers.0.x" for "model.layers.0.x": drops the name of the class with a head.
std::string without_first_part(const std::string& module) { return module.substr(module.find('.') + 1); }

bool is_within(const std::string& tensor, const std::string& module) {
  return !module.empty() && tensor.starts_with(module + ".");
}

}  // namespace

bool belongs_to_decoder(const std::string& tensor, const DecoderNames& names) {
  for (const char* part : {".lora_", ".base_layer."})
    if (tensor.find(part) != std::string::npos) return true;
  std::string name = tensor;
  for (const std::string wrapper : {"base_model.model.", "_orig_mod.", "module."})
    if (name.starts_with(wrapper)) name.erase(0, wrapper.size());
  if (is_within(name, names.head)) return true;
  const std::string modules[] = {names.embedding, names.positions, names.layers, names.final_norm};
  return std::any_of(std::begin(modules), std::end(modules), [&](const std::string& module) {
    return is_within(name, module) || is_within(name, without_first_part(module));
  });
}

bool is_computed(const std::string& tensor) {
  for (const char* end :
       {"rotary_emb.inv_freq", "rotary_emb.cos_cached", "rotary_emb.sin_cached", ".attn.bias", ".attn.masked_bias"})
    if (tensor.ends_with(end)) return true;
  return false;
}

void settle_unused(const std::string& path, const std::vector<std::string>& of_the_model,
                   const std::vector<std::string>& others, UnusedTensors rule) {
  const std::size_t count = of_the_model.size(), all = count + others.size();
  if (count > 0 && rule == UnusedTensors::refuse)
    throw InputError(text(path, ": tensor \"", of_the_model.front(), "\"",
                          count > 1 ? text(" and ", count - 1, " more belong") : " belongs",
                          " to the model, but its configuration has no place for ", count > 1 ? "them" : "it",
                          ". Leaving out such tensors makes another model: correct the configuration, or pass "
                          "--allow-unused"));
  if (all > 0)
    log_info("note: ", path, " holds ", all, all > 1 ? " tensors" : " tensor",
             " that this model does not use, the first is ", count > 0 ? of_the_model.front() : others.front());
}

}  // namespace zero
