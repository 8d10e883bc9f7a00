#pragma once
// SamplePrompts: the prompts of metrics.samples, and how a model continues them.
#include <optional>
#include <vector>

#include "models/generate/generator.h"
#include "models/model_config.h"
#include "models/text/tokenizer.h"
#include "zero/config/config.h"
#include "zero/data/examples/prompts.h"

namespace zero {

struct SamplePrompts {
  std::vector<Prompt> prompts;
  GenerateOptions options;
  ModelConfig model;
  const Tokenizer* tokenizer = nullptr;
};

/// Reads the file of metrics.samples; none if the key is empty. Throws InputError if there is no tokenizer, no chat
/// template for conversations, or a prompt that cannot be continued. The tokenizer must outlive the result.
std::optional<SamplePrompts> sample_prompts_of(const Config& config, const ModelConfig& model,
                                               const std::optional<Tokenizer>& tokenizer);

}  // namespace zero
