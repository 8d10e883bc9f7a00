#pragma once
// llama.cpp's rules for cutting a text into words before it merges bytes (tokenizer.ggml.pre), with their equivalents
// in a tokenizer.json. For .cpp files only: it includes nlohmann-json. No LibTorch.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace zero {

struct PreTokenizerRule {
  std::string name;                      // of tokenizer.ggml.pre
  std::vector<std::string> steps;        // "digits", "words REGEX", "bytes", one after the other
  bool whole_words = false;              // a word of the vocabulary is one token, whatever the merges (ignore_merges)
  bool bos = false;                      // precedes a text if the file does not say
  std::vector<std::string> others = {};  // synonyms
};

/// The known rules of llama.cpp (src/llama-vocab.cpp), each with the equivalent steps of a tokenizer.json.
const std::vector<PreTokenizerRule>& pre_tokenizer_rules();

/// Finds a rule by its name or a synonym. nullptr if there is none.
const PreTokenizerRule* pre_tokenizer_rule(const std::string& name);
/// "gpt-2, smollm, ...", for messages.
std::string names_of_pre_tokenizer_rules();

/// The pre_tokenizer of a tokenizer.json for a rule. pre_tokenizer_steps() returns the rule's steps for it.
nlohmann::json pre_tokenizer_of(const PreTokenizerRule& rule);

/// The pre_tokenizer of a tokenizer.json as such steps, in the spelling of the rules. A step that no rule has is its
/// JSON.
std::vector<std::string> pre_tokenizer_steps(const nlohmann::json& pre_tokenizer);

}  // namespace zero
