#pragma once
// OptimizerSettings: the keys of [optimizer] that each optimizer accepts, their defaults, and the resulting settings.
#include <string>

#include "zero/config/config.h"
#include "zero/config/config_keys.h"
#include "zero/optim/state_storage.h"

namespace zero {

/// Returns true if the run's optimizer reads the key, or if the key belongs to another section.
bool is_read(const Config& config, const ConfigKey& key);

/// Returns the same configuration with its optimizer's own defaults.
Config with_optimizer_defaults(Config config);

/// Fills in settings that were not given with the optimizer's own defaults. Throws InputError for a given setting that
/// the optimizer does not accept, and for states that cannot be stored as the settings say. Also throws for learning
/// rates that cannot follow one schedule.
void settle_optimizer(Config& config);

StateStorage state_storage_of(const Config& config);

/// Returns the [[optimizer.group]] tables as TOML; empty without groups.
std::string groups_toml(const OptimizerConfig& config);

/// Lists the groups and keys that differ, on one line: "group 2 (config.toml:14): lr 0.25 now, 0.5 then"; empty if
/// there are none.
std::string groups_difference(const std::vector<OptimizerGroup>& now, const std::vector<OptimizerGroup>& then);

/// Names the keys to lower if a run diverges: "optimizer.lr and optimizer.lr_adamw".
std::string keys_of_rates(const OptimizerConfig& config);

}  // namespace zero
