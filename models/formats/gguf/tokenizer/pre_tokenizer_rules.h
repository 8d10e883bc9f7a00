#pragma once
// The rules by which llama.cpp cuts a text into words before it merges bytes (tokenizer.ggml.pre), beside what a
// tokenizer.json says. For .cpp files only: it brings nlohmann-json with it. No LibTorch.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace zero {

struct PreTokenizerRule {
  std::string name;                      // of tokenizer.ggml.pre
  std::vector<std::string> steps;        // "digits", "words REGEX", "bytes", one after the other
  bool whole_words = false;              // a word of the vocabulary is its token, whatever the merges (ignore_merges)
  bool bos = false;                      // stands before a text where the file does not say
  std::vector<std::string> others = {};  // names that mean the same
};

/// Those of llama.cpp that are known here (src/llama-vocab.cpp), each by the steps of a tokenizer.json that mean the same.
const std::vector<PreTokenizerRule>& pre_tokenizer_rules();

/// By its name, or one that means the same; nullptr: none.
const PreTokenizerRule* pre_tokenizer_rule(const std::string& name);
/// "gpt-2, smollm, ...", for messages.
std::string names_of_pre_tokenizer_rules();

/// The pre_tokenizer of a tokenizer.json that a rule means: pre_tokenizer_steps() of it are the rule's.
nlohmann::json pre_tokenizer_of(const PreTokenizerRule& rule);

/// The pre_tokenizer of a tokenizer.json as such steps, in the spelling of the rules; a step that no rule has is its JSON.
std::vector<std::string> pre_tokenizer_steps(const nlohmann::json& pre_tokenizer);

}  // namespace zero
