#include "zero/train/run_data.h"

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "comm/error.h"
#include "comm/log.h"
#include "zero/data/open_rows.h"
#include "zero/data/preview.h"
#include "zero/train/config_rules.h"

namespace zero {
namespace {

bool needs_tokenizer(const Config& config) {
  const auto is_text = [](const std::string& path) { return data_kind(path) != "bin"; };
  return std::any_of(config.data.train.begin(), config.data.train.end(), is_text) ||
         std::any_of(config.data.validation.begin(), config.data.validation.end(), is_text);
}

// Where tokenizer_config.json and the chat template are looked for: the model's directory, else beside the tokenizer.
std::string directory_of(const Config& config) {
  if (config.model.path) return *config.model.path;
  const std::filesystem::path tokenizer(config.data.tokenizer);
  if (std::filesystem::is_directory(tokenizer)) return tokenizer.string();
  return tokenizer.has_parent_path() ? tokenizer.parent_path().string() : ".";
}

DataOptions options_of(const Config& config, const ModelConfig& model, const std::optional<Tokenizer>& tokenizer) {
  DataOptions options;
  options.files = config.data.train;
  options.token_width = token_width_of(config.data.token_dtype);
  options.seq_len = config.training.seq_len;
  options.vocab_size = model.vocab_size;
  // Beside the runs and not inside one: several runs on the same text share it.
  options.cache_folder = (std::filesystem::path(config.job.output_dir).lexically_normal().parent_path() / "token_cache").string();
  if (!tokenizer) return options;
  options.encoder = text_encoder_of(*tokenizer);
  options.tokenizer = &*tokenizer;
  options.conversations.model_directory = directory_of(config);
  options.conversations.chat_template = config.data.chat_template;
  options.conversations.train_on = train_on_of(config.data.train_on);
  options.overlong = overlong_of(config.data.overlong);
  options.packing = config.data.packing;
  return options;
}

}  // namespace

std::optional<Tokenizer> tokenizer_of(const Config& config, const ModelConfig& model) {
  std::string path = config.data.tokenizer;
  if (path.empty() && config.model.path && std::filesystem::exists(*config.model.path + "/tokenizer.model")) path = *config.model.path;
  if (path.empty()) {
    if (needs_tokenizer(config))
      throw InputError(config.where("data.tokenizer") + ": texts need a tokenizer: name a tokenizer.model, or a model.path that holds one");
    return std::nullopt;
  }
  Tokenizer tokenizer = Tokenizer::load(path);
  if (tokenizer.vocab_size() > model.vocab_size)
    throw InputError(text(config.where("data.tokenizer"), ": ", path, " has ", tokenizer.vocab_size(), " ids, the model's vocab_size is ",
                          model.vocab_size, ": use the model's own tokenizer or a model with a larger vocabulary"));
  return tokenizer;
}

TrainingData open_training_data(const Config& config, const BatchArithmetic& batch, const ModelConfig& model,
                                const std::optional<Tokenizer>& tokenizer, Communicator& communicator) {
  DataOptions options = options_of(config, model, tokenizer);
  std::shared_ptr<const RowSource> rows = open_rows(options, communicator);
  if (communicator.rank() == 0) log_info("training data: ", rows->describe());
  SampleOrder order({rows->size(), batch.global_batch_size, std::uint64_t(config.training.seed), config.data.shuffle});
  TrainingData data;
  data.training = std::make_unique<Loader>(std::move(rows), std::move(order),
                                           LoaderOptions{communicator.rank(), batch.ranks, batch.local_batch_size, batch.global_batch_size});
  if (config.data.validation.empty()) return data;
  options.files = config.data.validation;
  options.tail = ShortTail::keep;
  std::shared_ptr<const RowSource> held_out = open_rows(options, communicator);
  if (communicator.rank() == 0) log_info("validation data: ", held_out->describe());
  data.validation = std::make_unique<ValidationLoader>(std::move(held_out), communicator.rank(), batch.ranks, batch.local_batch_size);
  return data;
}

void print_preview(const Config& config, const ModelConfig& model, const std::optional<Tokenizer>& tokenizer, const PreviewOptions& preview) {
  for (const EncodedExample& example : preview_examples(options_of(config, model, tokenizer), preview.examples))
    std::cout << (preview.json ? preview_json(example) : preview_text(example, *tokenizer)) << '\n';
}

std::int64_t steps_of(const Config& config, const TrainingData& data) {
  return config.training.steps ? *config.training.steps : data.training->order().steps_of(*config.training.epochs);
}

}  // namespace zero
