#pragma once
// The keys of examples and messages beside those that hold their text. What a key means for training is honoured or
// refused by name; what means nothing for it (id, source, score) is passed over, and can be told. No LibTorch.
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace zero {

/// Refuses keys that would change the text or the loss of an example or message, unless their value says nothing: null,
/// an empty text, list or object, and of keys that hold lists or objects the JSON text of an empty one. InputError
/// begins with `place`. Names that are neither `known` nor refused go into `ignored`, if there is one, behind `prefix`.
void check_keys(const nlohmann::json& object, const std::vector<std::string_view>& known, const std::string& place,
                std::set<std::string>* ignored, std::string_view prefix = "");

/// Whether a message says that it is trained: "weight" (0 or 1, as OpenAI has it), "train" or "training" (true or
/// false, as axolotl has it). Nothing when it does not say. InputError for other values, and for a message that says
/// both.
std::optional<bool> trained_flag(const nlohmann::json& message, const std::string& place);

}  // namespace zero
