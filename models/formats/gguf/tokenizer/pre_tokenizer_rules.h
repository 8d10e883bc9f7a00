#pragma once
// llama.cpp's rules for splitting a text into words before it merges bytes (tokenizer.ggml.pre), and their equivalents
// in a tokenizer.json. Include this in .cpp files only, since it includes nlohmann-json. Does not include LibTorch.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace zero {

struct PreTokenizerRule {
  std::string name;                      // of tokenizer.ggml.pre
  std::vector<std::string> steps;        // "digits", "words REGEX" or "bytes", applied in order
  bool whole_words = false;              // a word in the vocabulary becomes one token without merging (ignore_merges)
  bool bos = false;                      // BOS precedes a text if the file does not say
  std::vector<std::string> others = {};  // synonyms
};

/// The known rules of llama.cpp (src/llama-vocab.cpp), each with the equivalent steps of a tokenizer.json.
const std::vector<PreTokenizerRule>& pre_tokenizer_rules();

/// Finds a rule by its name or a synonym. Returns nullptr if there is none.
const PreTokenizerRule* pre_tokenizer_rule(const std::string& name);
/// "gpt-2, smollm, ...", for messages.
std::string names_of_pre_tokenizer_rules();

/// Returns a rule as the pre_tokenizer of a tokenizer.json. pre_tokenizer_steps() turns that into the rule's steps
/// again.
nlohmann::json pre_tokenizer_of(const PreTokenizerRule& rule);

/// Returns a tokenizer.json's pre_tokenizer as steps in the spelling of the rules. A step that no rule has is returned
/// as its JSON.
std::vector<std::string> pre_tokenizer_steps(const nlohmann::json& pre_tokenizer);

}  // namespace zero
