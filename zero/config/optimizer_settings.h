#pragma once
// OptimizerSettings: which keys of [optimizer] an optimizer knows, what they are where nobody gave them, and what all
// of them come to.
#include <string>

#include "zero/config/config.h"
#include "zero/config/config_keys.h"
#include "zero/optim/state_storage.h"

namespace zero {

/// True if a run's optimizer looks at the key; true for keys of other sections.
bool is_read(const Config& config, const ConfigKey& key);

/// The same with the settings that its optimizer has by default.
Config with_optimizer_defaults(Config config);

/// Fills in settings that were not given, by the optimizer's own defaults. Throws InputError for a given one that the
/// optimizer does not know, and for states that cannot be stored as the settings say. Also throws for learning rates
/// that cannot follow one schedule.
void settle_optimizer(Config& config);

StateStorage state_storage_of(const Config& config);

/// [[optimizer.group]] tables as TOML; empty without groups.
std::string groups_toml(const OptimizerConfig& config);

/// Which groups differ, and in which keys, on one line: "group 2 (config.toml:14): lr 0.25 now, 0.5 then"; empty: none.
std::string groups_difference(const std::vector<OptimizerGroup>& now, const std::vector<OptimizerGroup>& then);

/// The keys by which a run that diverges takes shorter steps: "optimizer.lr and optimizer.lr_adamw".
std::string keys_of_rates(const OptimizerConfig& config);

}  // namespace zero
