#include "models/lora/module_names.h"

#include <algorithm>

namespace zero {
namespace {

/// True if `holds` is true for the module or one that contains it.
template <class Holds>
bool of_any_around(std::string module, const Holds& holds) {
  while (!holds(module)) {
    const std::size_t dot = module.rfind('.');
    if (dot == std::string::npos) return false;
    module.resize(dot);
  }
  return true;
}

}  // namespace

std::string module_of(const std::string& tensor) { return tensor.substr(0, tensor.rfind('.')); }

bool is_targeted(const std::vector<std::string>& targets, const std::string& module) {
  return std::any_of(targets.begin(), targets.end(),
                     [&](const std::string& target) { return module == target || module.ends_with("." + target); });
}

bool is_saved(const std::vector<std::string>& saved, const std::string& module) {
  return std::any_of(saved.begin(), saved.end(), [&](const std::string& end) { return module.ends_with(end); });
}

bool is_saved_within(const std::vector<std::string>& saved, const std::string& module) {
  return of_any_around(module, [&](const std::string& outer) { return is_saved(saved, outer); });
}

bool is_kept_from_adapters(const std::vector<std::string>& saved, const std::string& module) {
  return of_any_around(module, [&](const std::string& outer) { return is_targeted(saved, outer); });
}

}  // namespace zero
