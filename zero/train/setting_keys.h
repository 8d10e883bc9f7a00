#pragma once
// SettingKeys: which settings a resumed run must share with its checkpoint, by their keys.
#include <map>
#include <string>

#include "zero/config/config.h"
#include "zero/config/config_keys.h"

namespace zero {

/// Returns true for keys that affect how a result is computed, or how long a run is, but not what a step does.
bool is_free(const ConfigKey& key);

/// Returns true for keys of the model's shape. The model's path stands for the base model of adapters.
bool is_shape(const std::string& key);

/// Returns true for keys that decide which tensors are trained, and their shapes. States do not fit others.
bool is_of_adapter(const std::string& key);

/// Returns true for dropout's keys, and for the fields of config.json from which they have their values.
bool is_of_dropout(const std::string& key);

/// Returns true for those fields alone. Runs that trained without dropout stored them.
bool is_dropout_field(const std::string& key);

/// The values that all runs had before these keys existed.
const std::map<std::string, std::string>& values_before();

/// Returns the value of a key as TOML; "none" if it has none.
std::string text_of(const ConfigKey& key, Config& config);

}  // namespace zero
