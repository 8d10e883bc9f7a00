#include "models/formats/gguf/pre_tokenizer_rules.h"

#include <map>

namespace zero {
namespace {

using nlohmann::json;

constexpr const char* digits = "digits";
constexpr const char* bytes = "bytes";

// Words of GPT-2; of cl100k, which Llama 3 has too; of Qwen 2, with each digit alone; of Tekken and of o200k, which cut
// where small letters end and capitals begin.
constexpr const char* gpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* cl100k =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* qwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* tekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* o200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// Other spellings of the same words.
const std::map<std::string, std::string>& spellings() {
  static const std::map<std::string, std::string> same{
      // possessive: what stands behind the marks cannot begin inside of what they take
      {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
       cl100k},
      {R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
       cl100k},
      {R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
       qwen2}};
  return same;
}

std::string words(const std::string& regex) {
  const auto same = spellings().find(regex);
  return "words " + (same == spellings().end() ? regex : same->second);
}

/// The words take every character, so that keeping the matches alone keeps all.
bool keeps_all(const json& split) {
  const json behavior = split.value("behavior", json()), invert = split.value("invert", json(false));
  return (behavior == "Isolated" && invert == false) || (behavior == "Removed" && invert == true);
}

void add_steps(const json& step, std::vector<std::string>& steps) {
  const json type = step.is_object() ? step.value("type", json()) : json();
  if (type == "Sequence" && step.contains("pretokenizers") && step["pretokenizers"].is_array()) {
    for (const json& inner : step["pretokenizers"]) add_steps(inner, steps);
  } else if (type == "Split" && keeps_all(step) && step.contains("pattern") && step["pattern"].contains("Regex") &&
             step["pattern"]["Regex"].is_string()) {
    steps.push_back(words(step["pattern"]["Regex"]));
  } else if (type == "ByteLevel" && step.value("add_prefix_space", json(true)) == false) {
    if (step.value("use_regex", json(true)) == true) steps.push_back(words(gpt2));
    steps.emplace_back(bytes);
  } else if (type == "Digits" && step.value("individual_digits", json()) == true) {
    steps.emplace_back(digits);
  } else {
    steps.push_back(step.dump());
  }
}

}  // namespace

const std::vector<PreTokenizerRule>& pre_tokenizer_rules() {
  static const std::vector<PreTokenizerRule> rules{
      {"gpt-2", {words(gpt2), bytes}},
      {"smollm", {digits, words(gpt2), bytes}},
      {"llama-bpe", {words(cl100k), bytes}, true},
      {"dbrx", {words(cl100k), bytes}},
      {"qwen2", {words(qwen2), bytes}},
      {"tekken", {words(tekken), bytes}, true},
      {"gpt-4o", {words(o200k), bytes}},
  };
  return rules;
}

std::vector<std::string> pre_tokenizer_steps(const json& pre_tokenizer) {
  std::vector<std::string> steps;
  if (!pre_tokenizer.is_null()) add_steps(pre_tokenizer, steps);
  return steps;
}

}  // namespace zero
