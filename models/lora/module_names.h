#pragma once
// PEFT's rules for the names of modules: which ones target_modules and modules_to_save mean. No LibTorch.
#include <string>
#include <vector>

namespace zero {

/// The module of a tensor: "lm_head" of "lm_head.weight".
std::string module_of(const std::string& tensor);

/// Whether target_modules name the module: by its whole name, or by the end behind a dot.
bool is_targeted(const std::vector<std::string>& targets, const std::string& module);

/// Whether modules_to_save name the module by the end of its name. PEFT asks for no dot in front.
bool is_saved(const std::vector<std::string>& saved, const std::string& module);

/// Whether modules_to_save name the module or one around it: "mlp" stands for "layers.0.mlp.up_proj" too.
bool is_saved_within(const std::vector<std::string>& saved, const std::string& module);

/// Whether modules_to_save keep adapters off the module: PEFT adapts nothing in modules whose whole name, or the end
/// behind a dot, is among them.
bool is_kept_from_adapters(const std::vector<std::string>& saved, const std::string& module);

}  // namespace zero
