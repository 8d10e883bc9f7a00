#pragma once
// SettingsDifference: compares the settings of a resumed run with those of its checkpoint.
#include <string>
#include <vector>

#include "zero/checkpoint/manifest.h"
#include "zero/config/config.h"
#include "zero/train/resume_settings.h"

namespace zero {

/// Throws InputError for unknown keys, and names the nearest known key. Also throws for keys that decide the shapes of
/// the model or of its adapter, which cannot change.
void check_accepted(const std::vector<std::string>& accepted);

/// Throws InputError if a key differs between `now` and `then` and is not in `accepted`. The message lists every such
/// key with both values, and a remedy. If the optimizer differs, the message has its name but not its defaults.
/// `checkpoint` names the source of `then`.
void require_same_settings(const Config& config, const Settings& now, const Settings& then,
                           const std::vector<std::string>& accepted, const std::string& checkpoint);

/// Returns the keys of `accepted` whose values changed, for the log: "optimizer.lr 1.0 -> 0.5".
std::string accepted_changes(const Config& config, const Settings& now, const Settings& then,
                             const std::vector<std::string>& accepted);

/// Returns the other keys whose values changed, for the log: "zero.stage 3 -> 1, training.steps 100 -> 200"; empty if
/// there are none.
std::string other_changes(const Config& now, const Config& then);

/// Returns changes of the machine, for the log: "ranks 2 -> 4, threads of a rank 1 -> 2, processor A -> B". Omits facts
/// that an earlier version did not record.
std::string place_changes(const RunDescription& now, const RunDescription& then);

}  // namespace zero
