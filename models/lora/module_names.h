#pragma once
// How PEFT matches the names in target_modules and modules_to_save. Does not include LibTorch.
#include <string>
#include <vector>

namespace zero {

/// The module of a tensor: "lm_head" for "lm_head.weight".
std::string module_of(const std::string& tensor);

/// True if target_modules name the module: by its whole name, or by its end after a dot.
bool is_targeted(const std::vector<std::string>& targets, const std::string& module);

/// True if an entry of modules_to_save is the end of the module's name. PEFT does not require a dot before it.
bool is_saved(const std::vector<std::string>& saved, const std::string& module);

/// True if modules_to_save name the module or an enclosing one: "mlp" covers "layers.0.mlp.up_proj" too.
bool is_saved_within(const std::vector<std::string>& saved, const std::string& module);

/// True if modules_to_save excludes the module from adapters. PEFT adapts nothing inside a module that is listed by its
/// whole name, or by its end after a dot.
bool is_kept_from_adapters(const std::vector<std::string>& saved, const std::string& module);

}  // namespace zero
