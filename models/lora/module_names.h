#pragma once
// PEFT's rules for names in target_modules and modules_to_save. No LibTorch.
#include <string>
#include <vector>

namespace zero {

/// The module of a tensor: "lm_head" of "lm_head.weight".
std::string module_of(const std::string& tensor);

/// True if target_modules name the module: by its whole name, or by its end after a dot.
bool is_targeted(const std::vector<std::string>& targets, const std::string& module);

/// True if modules_to_save name the module by the end of its name. PEFT requires no dot in front.
bool is_saved(const std::vector<std::string>& saved, const std::string& module);

/// True if modules_to_save name the module or an enclosing one: "mlp" covers "layers.0.mlp.up_proj" too.
bool is_saved_within(const std::vector<std::string>& saved, const std::string& module);

/// True if modules_to_save keep adapters off the module. PEFT adapts nothing in modules whose whole name, or its end
/// after a dot, is listed.
bool is_kept_from_adapters(const std::vector<std::string>& saved, const std::string& module);

}  // namespace zero
