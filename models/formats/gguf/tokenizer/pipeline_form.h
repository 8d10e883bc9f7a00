#pragma once
// What llama.cpp makes of a tokenizer.json: merges of bytes behind one of its pre-tokenizers ("gpt2"), or merges of
// characters by scores ("llama"). No LibTorch.
#include <string>
#include <unordered_map>
#include <vector>

namespace zero {

struct PipelineForm {
  std::string model;                              // tokenizer.ggml.model
  std::string pre;                                // tokenizer.ggml.pre
  std::vector<std::string> merges;                // of "gpt2": "a b"
  std::unordered_map<std::string, float> scores;  // of "llama", of tokens that are merged
  std::string unknown;                            // of "llama": unk_token
  bool space_in_front = false;                    // of "llama"
  std::vector<std::string> notes;                 // in which texts llama.cpp finds other ids, for the log
};

/// Of a file that Tokenizer::load takes. InputError, with the step that llama.cpp does not do, for one that it would
/// tokenize otherwise.
PipelineForm pipeline_form(const std::string& path);

}  // namespace zero
