#pragma once
// llama.cpp's form of a tokenizer.json: merges of bytes after one of its pre-tokenizers ("gpt2"), or merges of
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
  std::vector<std::string> notes;                 // texts in which llama.cpp finds other ids, for the log
};

/// The form of a file that Tokenizer::load accepts. Throws InputError, with the step that llama.cpp lacks, for a
/// tokenizer that it would execute differently.
PipelineForm pipeline_form(const std::string& path);

}  // namespace zero
