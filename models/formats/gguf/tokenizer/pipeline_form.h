#pragma once
// llama.cpp's form of a tokenizer.json: byte merges after one of its pre-tokenizers ("gpt2"), or character merges by
// score ("llama"). Does not include LibTorch.
#include <string>
#include <unordered_map>
#include <vector>

namespace zero {

struct PipelineForm {
  std::string model;                              // tokenizer.ggml.model
  std::string pre;                                // tokenizer.ggml.pre
  std::vector<std::string> merges;                // of "gpt2": "a b"
  std::unordered_map<std::string, float> scores;  // of "llama": scores of tokens that merges produce
  std::string unknown;                            // of "llama": unk_token
  bool space_in_front = false;                    // of "llama"
  std::vector<std::string> notes;                 // texts that llama.cpp encodes differently, for the log
};

/// Returns the form of a file that Tokenizer::load accepts. If llama.cpp would encode differently, throws InputError
/// with the step that llama.cpp lacks.
PipelineForm pipeline_form(const std::string& path);

}  // namespace zero
