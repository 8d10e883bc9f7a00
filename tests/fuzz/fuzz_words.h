#pragma once
// Material for changing inputs, and texts for inputs that are accepted.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace zero {

/// Texts for tokenizers.
const std::vector<std::string>& hard_texts();

/// Components of a tokenizer.json, one of nearly every kind.
std::vector<nlohmann::ordered_json> tokenizer_parts();

/// Valid and broken pieces of JSON, and keys of tokenizers and conversations.
const std::vector<std::string>& json_words();

/// Words, expressions and broken pieces of templates.
const std::vector<std::string>& template_words();

}  // namespace zero
