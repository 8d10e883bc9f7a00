#include "zero/train/run_data.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "models/formats/base_model.h"
#include "models/formats/gguf/tokenizer/gguf_tokenizer.h"
#include "models/formats/tokenizer_files.h"
#include "zero/config/config_rules.h"
#include "zero/config/data_files.h"
#include "zero/config/setup.h"
#include "zero/data/open_rows.h"
#include "zero/data/preview.h"
#include "zero/data/rows/held_out_rows.h"

namespace zero {
namespace {

/// A GPU's attention kernels are planned for each new length, which takes up to a second. All lengths of a run are
/// therefore multiples of this, or seq_len.
constexpr std::int64_t device_length_multiple = 64;

template <class Test>
bool any_file(const Config& config, Test test) {
  return std::any_of(config.data.train.begin(), config.data.train.end(), test) ||
         std::any_of(config.data.validation.begin(), config.data.validation.end(), test);
}

bool needs_tokenizer(const Config& config) {
  return any_file(config, [](const std::string& path) { return data_kind(path) != "bin"; });
}

DataOptions options_of(const Config& config, const ModelConfig& model, const std::optional<Tokenizer>& tokenizer) {
  DataOptions options;
  options.files = config.data.train;
  options.token_width = token_width_of(config.data.token_dtype);
  options.seq_len = config.training.seq_len;
  options.vocab_size = model.vocab_size;
  options.cache_folder = (std::filesystem::path(config.job.output_dir) / "token_cache").string();
  if (!tokenizer) return options;
  options.encoder = text_encoder_of(*tokenizer);
  options.tokenizer = &*tokenizer;
  options.conversations.model_directory = tokenizer_source_of(config).settings;
  options.conversations.chat_template = config.data.chat_template;
  options.conversations.template_place = config.where("data.chat_template");
  options.conversations.train_on = train_on_of(config.data.train_on);
  options.overlong = overlong_of(config.data.overlong);
  options.packing = config.data.packing;
  return options;
}

// Loads the tokenizer. Error messages begin with its place in the configuration.
Tokenizer load_tokenizer(const Config& config, const std::string& path) {
  try {
    return Tokenizer::load(path);
  } catch (const InputError& error) {
    if (config.data.tokenizer.empty()) throw;
    throw InputError(config.where("data.tokenizer") + ": " + error.what());
  }
}

// Returns the remedy for a tokenizer with more ids than the model.
std::string remedy_of_large(const Config& config, const Tokenizer& tokenizer) {
  if (config.model.preset) return text("set vocab_size = ", tokenizer.vocab_size(), " in [model], beside preset");
  if (config.data.tokenizer.empty())
    return "the directory's tokenizer was enlarged and its embedding was not: take both from one model";
  const std::string& own = *config.model.path;
  const std::string home = tokenizer_home(tokenizer.model_path());
  if (Tokenizer::lies_at(own) && !is_same_place(own, home))
    return "leave the key out, and the tokenizer of model.path is used";
  return "name the tokenizer that the model was made with, or train on ids (.bin), which need no tokenizer";
}

void tell(const Communicator& communicator, const char* what, const RowSource& rows) {
  if (communicator.rank() != 0) return;
  log_info(what, rows.describe());
  if (const std::string warning = rows.warning(); !warning.empty()) log_warning(what, warning);
}

/// Holds out data.validation_fraction of the rows, and returns them. `rows` become the rest.
std::shared_ptr<const RowSource> hold_out(const Config& config, std::shared_ptr<const RowSource>& rows) {
  const auto held = std::llround(config.data.validation_fraction * double(rows->size()));
  if (held < 1 || held >= rows->size())
    throw InputError(text(config.where("data.validation_fraction"), ": is ", held, " of ", rows->size(),
                          " rows; at least one must be held out, and one left to train on"));
  auto validation = std::make_shared<HeldOutRows>(rows, held, HeldOutRows::Side::validation);
  rows = std::make_shared<HeldOutRows>(rows, held, HeldOutRows::Side::training);
  return validation;
}

}  // namespace

std::optional<Tokenizer> tokenizer_of(const Config& config, const ModelConfig& model) {
  std::string path = tokenizer_source_of(config).tokenizer;
  if (config.data.tokenizer.empty() && !Tokenizer::lies_at(path)) path.clear();
  if (path.empty()) {
    if (needs_tokenizer(config) && config.model.path && is_gguf_model(*config.model.path))
      throw InputError(text(config.where("data.tokenizer"), ": texts need a tokenizer, and ", *config.model.path, ": ",
                            why_no_tokenizer(GgufFile(*config.model.path)),
                            ": name the model's tokenizer.json or tokenizer.model, or a folder with one"));
    if (needs_tokenizer(config))
      throw InputError(text(config.where("data.tokenizer"), ": texts need a tokenizer, and ",
                            config.model.path
                                ? *config.model.path + " holds no tokenizer.json, tokenizer.model or spiece.model"
                                : "a preset has none",
                            ": name a tokenizer.json or tokenizer.model, or a folder with one"));
    return std::nullopt;
  }
  if (!needs_tokenizer(config) && Tokenizer::is_json(path))
    return std::nullopt;  // it may be of a kind that is not known here
  Tokenizer tokenizer = load_tokenizer(config, path);
  if (tokenizer.vocab_size() <= model.vocab_size || !needs_tokenizer(config)) return tokenizer;
  throw InputError(text(where_of(config, "data.tokenizer", path), " has ", tokenizer.vocab_size(),
                        " ids, the model's vocab_size is ", model.vocab_size, ": ",
                        remedy_of_large(config, tokenizer)));
}

TrainingData open_training_data(const Config& config, const BatchArithmetic& batch, const ModelConfig& model,
                                const std::optional<Tokenizer>& tokenizer, Communicator& communicator,
                                const CoreSet& cores, at::Device device) {
  DataOptions options = options_of(config, model, tokenizer);
  options.cores = cores;
  if (tokenizer && tokenizer->beside_merges() && communicator.rank() == 0)
    log_warning(
        tokenizer->model_path(), ": ", tokenizer->beside_merges(),
        ": SentencePiece gives its ids here; transformers' AutoTokenizer may give others, and zero_export will refuse GGUF files (docs/data.md)");
  if (tokenizer && tokenizer->vocab_size() > model.vocab_size && communicator.rank() == 0)
    log_warning(
        tokenizer->model_path(), ": has ", tokenizer->vocab_size(),
        " ids with the tokens that its folder adds, the model's vocab_size is ", model.vocab_size,
        ": ids (.bin) can be trained, and the tokenizer goes along as it is; prompts with tokens beyond that size cannot be read");
  std::shared_ptr<const RowSource> rows = open_rows(options, communicator), held_out;
  if (config.data.validation_fraction > 0) all_or_none(communicator, [&] { held_out = hold_out(config, rows); });
  tell(communicator, "training data: ", *rows);
  SampleOrder order({rows->size(), batch.global_batch_size, std::uint64_t(config.training.seed), config.data.shuffle});
  TrainingData data;
  LoaderOptions loading{batch.mesh.index(communicator.rank(), axes::rows), batch.ranks, batch.local_batch_size,
                        batch.global_batch_size};
  if (!device.is_cpu()) loading.length = {device_length_multiple, config.training.seq_len};
  data.training = std::make_unique<Loader>(std::move(rows), std::move(order), loading);
  if (!config.validates()) return data;
  if (!held_out) {
    options.files = config.data.validation;
    options.tail = PartialWindow::keep;
    held_out = open_rows(options, communicator);
  }
  tell(communicator, "validation data: ", *held_out);
  data.validation =
      std::make_unique<ValidationLoader>(std::move(held_out), loading.rank, loading.ranks,
                                         config.job.over_ranks() ? 1 : loading.local_batch_size, loading.length);
  return data;
}

void print_preview(const Config& config, const ModelConfig& model, const std::optional<Tokenizer>& tokenizer,
                   const PreviewOptions& preview) {
  for (const EncodedExample& example : preview_examples(options_of(config, model, tokenizer), preview.examples))
    std::cout << (preview.json ? preview_json(example) : preview_text(example, *tokenizer)) << '\n';
}

std::int64_t steps_of(const Config& config, const TrainingData& data) {
  if (config.training.steps) return *config.training.steps;
  const SampleOrder& order = data.training->order();
  const std::int64_t steps = order.steps_of(*config.training.epochs);
  validate_for_steps(config, steps,
                     text("epochs = ", *config.training.epochs, " over ", order.options().rows, " rows in steps of ",
                          order.options().global_batch_size));
  return steps;
}

}  // namespace zero
