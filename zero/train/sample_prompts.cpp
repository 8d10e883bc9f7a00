#include "zero/train/sample_prompts.h"

#include "base/error.h"
#include "base/log.h"
#include "models/formats/generation_config.h"
#include "models/formats/tokenizer_files.h"
#include "models/generate/chat_history.h"
#include "zero/config/setup.h"

namespace zero {
namespace {

void require_room(const std::vector<Prompt>& prompts, const Config& config, const ModelConfig& model) {
  for (std::size_t i = 0; i < prompts.size(); ++i)
    if (std::int64_t(prompts[i].ids.size()) >= model.max_position_embeddings)
      throw InputError(text(config.metrics.samples, ":", i + 1, ": has ", prompts[i].ids.size(),
                            " tokens, which leave no room in the model's context of ", model.max_position_embeddings,
                            ": shorten it"));
}

SamplePrompts read(const Config& config, const ModelConfig& model, const Tokenizer& tokenizer) {
  const std::string& path = config.metrics.samples;
  const TokenizerSource source = tokenizer_source_of(config);
  const Prompter prompter(tokenizer, source.settings);
  const std::vector<std::string> lines = read_prompts(path);
  SamplePrompts samples;
  samples.model = model;
  samples.tokenizer = &tokenizer;
  samples.options.max_new_tokens = config.metrics.sample_tokens;
  samples.options.stop_ids = stop_ids_of(model, config.model.path.value_or(""), source);
  if (holds_chats(path)) {
    const ChatTemplate chat_template = ChatTemplate::load(source.settings, source.chat_template);
    samples.prompts = chat_prompts(lines, path, chat_template, prompter);
    samples.options.stop_ids.push_back(end_of_turn_of(chat_template, prompter.chat()));
  } else {
    samples.prompts = text_prompts(lines, path, prompter);
  }
  require_room(samples.prompts, config, model);
  return samples;
}

}  // namespace

std::optional<SamplePrompts> sample_prompts_of(const Config& config, const ModelConfig& model,
                                               const std::optional<Tokenizer>& tokenizer) {
  if (config.metrics.samples.empty()) return std::nullopt;
  if (!tokenizer)
    throw InputError(config.where("metrics.samples") +
                     ": needs a tokenizer, and the model has none: name one by data.tokenizer");
  try {
    return read(config, model, *tokenizer);
  } catch (const InputError& error) {
    throw InputError(text(config.where("metrics.samples"), ": ", error.what()));
  }
}

}  // namespace zero
