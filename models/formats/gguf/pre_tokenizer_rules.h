#pragma once
// The rules by which llama.cpp cuts a text into words before it merges bytes (tokenizer.ggml.pre), beside what a
// tokenizer.json says. For .cpp files only: it brings nlohmann-json with it. No LibTorch.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace zero {

struct PreTokenizerRule {
  std::string name;                // of tokenizer.ggml.pre
  std::vector<std::string> steps;  // "digits", "words REGEX", "bytes", one after the other
  bool whole_words = false;        // a word of the vocabulary is its token, whatever the merges (ignore_merges)
};

/// Those of llama.cpp that are known here (src/llama-vocab.cpp), each by the steps of a tokenizer.json that mean the same.
const std::vector<PreTokenizerRule>& pre_tokenizer_rules();

/// The pre_tokenizer of a tokenizer.json as such steps, in the spelling of the rules; a step that no rule has is its JSON.
std::vector<std::string> pre_tokenizer_steps(const nlohmann::json& pre_tokenizer);

}  // namespace zero
