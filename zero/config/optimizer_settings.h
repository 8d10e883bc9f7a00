#pragma once
// OptimizerSettings: the keys of [optimizer] that an optimizer knows, their defaults, and the settings that result.
#include <string>

#include "zero/config/config.h"
#include "zero/config/config_keys.h"
#include "zero/optim/state_storage.h"

namespace zero {

/// True if a run's optimizer reads the key. Also true for keys of other sections.
bool is_read(const Config& config, const ConfigKey& key);

/// Returns the same configuration with its optimizer's own defaults.
Config with_optimizer_defaults(Config config);

/// Fills in settings that were not given, by the optimizer's own defaults. Throws InputError for a given one that the
/// optimizer does not know, and for states that cannot be stored as the settings say. Also throws for learning rates
/// that cannot follow one schedule.
void settle_optimizer(Config& config);

StateStorage state_storage_of(const Config& config);

/// [[optimizer.group]] tables as TOML; empty without groups.
std::string groups_toml(const OptimizerConfig& config);

/// Lists the groups and keys that differ, on one line: "group 2 (config.toml:14): lr 0.25 now, 0.5 then"; empty: none.
std::string groups_difference(const std::vector<OptimizerGroup>& now, const std::vector<OptimizerGroup>& then);

/// The keys to lower for a run that diverges: "optimizer.lr and optimizer.lr_adamw".
std::string keys_of_rates(const OptimizerConfig& config);

}  // namespace zero
