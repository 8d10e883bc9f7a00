#pragma once
// Keys of examples and messages other than those that hold their text. Keys that affect training are either honoured,
// or rejected by name. Others (id, source, score) are skipped and can be listed. No LibTorch.
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace zero {

/// Throws InputError, whose message begins with `place`, for keys that would change the text or the loss, unless their
/// value is empty. Empty values are null, "", [], {}, and the JSON text of an empty list or object. Keys that are
/// neither known nor rejected are added to `ignored`, if it is given, after `prefix`.
void check_keys(const nlohmann::json& object, const std::vector<std::string_view>& known, const std::string& place,
                std::set<std::string>* ignored, std::string_view prefix = "");

/// Reads a message's training flag: "weight" (0 or 1, as OpenAI), "train" or "training" (true or false, as axolotl).
/// Returns none if the message has no flag. Throws InputError for other values and for a message with both.
std::optional<bool> trained_flag(const nlohmann::json& message, const std::string& place);

}  // namespace zero
