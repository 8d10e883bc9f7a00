#pragma once
// The material of changed inputs, and texts for accepted ones.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace zero {

/// Texts for tokenizers.
const std::vector<std::string>& hard_texts();

/// Components of a tokenizer.json, one of nearly every kind.
std::vector<nlohmann::ordered_json> tokenizer_parts();

/// Pieces of JSON, whole and broken, and keys of tokenizers and conversations.
const std::vector<std::string>& json_words();

/// Words, expressions and broken pieces of templates.
const std::vector<std::string>& template_words();

}  // namespace zero
