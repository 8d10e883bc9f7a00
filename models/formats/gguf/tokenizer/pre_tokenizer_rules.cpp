#include "models/formats/gguf/tokenizer/pre_tokenizer_rules.h"

#include <algorithm>
#include <map>

namespace zero {
namespace {

using nlohmann::json;

constexpr const char* digits = "digits";
constexpr const char* bytes = "bytes";
const std::string word_step = "words ";

// The word patterns of GPT-2; of cl100k (also Llama 3); of Qwen 2, with single digits; of Tekken and o200k. The last
// two also split between lower and upper case.
constexpr const char* gpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* cl100k =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* qwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* tekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* o200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// Other spellings of the same patterns.
const std::map<std::string, std::string>& spellings() {
  static const std::map<std::string, std::string> same{
      // possessive: the part after the marks cannot start inside their match
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
  return word_step + (same == spellings().end() ? regex : same->second);
}

/// The patterns match every character, so keeping only the matches keeps everything.
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
      {"gpt-2", {words(gpt2), bytes}, false, false, {"phi-2"}},
      {"smollm", {digits, words(gpt2), bytes}},
      {"llama-bpe", {words(cl100k), bytes}, true, true, {"llama3", "llama-v3", "falcon3", "pixtral"}},
      {"dbrx", {words(cl100k), bytes}, false, false, {"smaug-bpe"}},
      {"qwen2", {words(qwen2), bytes}, false, false, {"deepseek-r1-qwen"}},
      {"tekken", {words(tekken), bytes}, true, true},
      {"gpt-4o", {words(o200k), bytes}, false, false, {"llama4"}},
  };
  return rules;
}

const PreTokenizerRule* pre_tokenizer_rule(const std::string& name) {
  for (const PreTokenizerRule& rule : pre_tokenizer_rules())
    if (rule.name == name || std::find(rule.others.begin(), rule.others.end(), name) != rule.others.end()) return &rule;
  return nullptr;
}

std::string names_of_pre_tokenizer_rules() {
  std::string names;
  for (const PreTokenizerRule& rule : pre_tokenizer_rules()) names += (names.empty() ? "" : ", ") + rule.name;
  return names;
}

json pre_tokenizer_of(const PreTokenizerRule& rule) {
  json steps = json::array();
  for (const std::string& step : rule.steps) {
    if (step == digits)
      steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
    else if (step == bytes)
      steps.push_back(
          {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}});
    else
      steps.push_back({{"type", "Split"},
                       {"pattern", {{"Regex", step.substr(word_step.size())}}},
                       {"behavior", "Isolated"},
                       {"invert", false}});
  }
  return {{"type", "Sequence"}, {"pretokenizers", steps}};
}

std::vector<std::string> pre_tokenizer_steps(const json& pre_tokenizer) {
  std::vector<std::string> steps;
  if (!pre_tokenizer.is_null()) add_steps(pre_tokenizer, steps);
  return steps;
}

}  // namespace zero
