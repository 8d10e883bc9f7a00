#include "zero/train/run_data.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <utility>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "models/formats/base_model.h"
#include "models/formats/gguf/tokenizer/gguf_tokenizer.h"
#include "models/formats/tokenizer_files.h"
#include "models/loss/dpo_loss.h"
#include "models/loss/kto_loss.h"
#include "models/loss/orpo_loss.h"
#include "zero/config/config_rules.h"
#include "zero/config/data_files.h"
#include "zero/config/setup.h"
#include "zero/data/open_rows.h"
#include "zero/data/preview.h"
#include "zero/train/row_sets.h"

namespace zero {
namespace {

/// A GPU's attention kernels are planned for each new length, which takes up to a second. All lengths of a run are
/// therefore multiples of this, or the most tokens of a row.
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
  options.weights = config.data.weights;
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
  if (config.preference) {
    options.use = config.preference->takes_pairs() ? ExampleUse::pair : ExampleUse::judged;
    if (config.preference->method == "orpo") options.pairs.targets = PairTargets::chosen_prompts;
    options.pairs.shares_prompts = takes_trunks(model, options.seq_len);
  }
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

/// Opens files as the sets of their rows: one, or one for each file if they have weights.
std::vector<RowSet> open_sets(const DataOptions& options, const std::string& key, const Config& config,
                              std::int64_t global_batch_size, Communicator& communicator) {
  std::vector<std::shared_ptr<const RowSource>> sources = open_sources(options, communicator);
  std::vector<RowSet> sets;
  all_or_none(communicator, [&] {
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const std::string file = options.weights.empty() ? "" : ": " + options.files[i];
      sets.push_back(row_set_of(std::move(sources[i]), config, global_batch_size, config.where(key) + file));
    }
  });
  return sets;
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

std::unique_ptr<const Loss> preference_loss(const PreferenceSection& preference) {
  if (preference.method == "orpo") return orpo_loss(preference.beta);
  if (preference.method == "kto")
    return kto_loss({preference.beta, preference.desirable_weight, preference.undesirable_weight});
  DpoOptions options{{}, preference.beta, preference.label_smoothing};
  for (std::size_t i = 0; i < preference.loss_type.size(); ++i)
    options.terms.emplace_back(preference.loss_type[i],
                               preference.loss_weights.empty() ? 1 : preference.loss_weights[i]);
  return dpo_loss(options);
}

TrainingData open_training_data(const Config& config, const BatchArithmetic& batch, const ModelConfig& model,
                                const std::optional<Tokenizer>& tokenizer, Communicator& communicator,
                                const CoreSet& cores, at::Device device) {
  DataOptions options = options_of(config, model, tokenizer);
  options.cores = cores;
  // A GPU's attention by spans takes no trunks, and a mask of each row would cost more than they save.
  if (!device.is_cpu()) options.pairs.shares_prompts = false;
  if (tokenizer && tokenizer->beside_merges() && communicator.rank() == 0)
    log_warning(
        tokenizer->model_path(), ": ", tokenizer->beside_merges(),
        ": SentencePiece gives its ids here; transformers' AutoTokenizer may give others, and zero_export will refuse GGUF files (docs/data.md)");
  if (tokenizer && tokenizer->vocab_size() > model.vocab_size && communicator.rank() == 0)
    log_warning(
        tokenizer->model_path(), ": has ", tokenizer->vocab_size(),
        " ids with the tokens that its folder adds, the model's vocab_size is ", model.vocab_size,
        ": ids (.bin) can be trained, and the tokenizer goes along as it is; prompts with tokens beyond that size cannot be read");
  const auto open = [&](const char* key) {
    return open_sets(options, key, config, batch.global_batch_size, communicator);
  };
  std::vector<RowSet> sets = open("data.train");
  RowSet validation;
  if (config.data.validation_fraction > 0) all_or_none(communicator, [&] { validation = hold_out(config, sets); });
  for (const RowSet& set : sets) tell(communicator, "training data: ", *set.rows);
  RowSet training = join(sets);
  TrainingData data;
  const SampleOrder order({training.rows->size(), batch.global_batch_size, std::uint64_t(config.training.seed),
                           config.data.shuffle, weighted(sets, options.weights)});
  LoaderOptions loading{batch.mesh.index(communicator.rank(), axes::rows), batch.ranks, batch.local_batch_size,
                        batch.global_batch_size};
  if (!device.is_cpu()) loading.length = {device_length_multiple, config.row_tokens()};
  const auto validation_loader = [&config, loading](std::shared_ptr<const RowSource> source, const Loss& loss) {
    const std::int64_t rows_of_a_batch = config.job.over_ranks() ? 1 : loading.local_batch_size;
    return std::make_unique<ValidationLoader>(std::move(source), loading.rank, loading.ranks, rows_of_a_batch,
                                              loading.length, loss);
  };
  const auto loader_of_tokens = [validation_loader](std::shared_ptr<const RowSource> source) {
    return validation_loader(std::move(source), cross_entropy_loss());
  };
  const auto add_references = [&](const std::string& name, RowSet& set) {
    if (!config.preference || !config.preference->needs_reference()) return;
    for (const auto& [source, suffix] : {std::pair(&set.rows, ""), std::pair(&set.mismatched, "_mismatched")}) {
      if (!*source) continue;
      auto with_reference = std::make_shared<ReferenceRows>(*source, config.preference->takes_pairs() ? 2 : 1);
      data.references.push_back({name + suffix, with_reference, name == "training", loader_of_tokens});
      *source = std::move(with_reference);
    }
  };
  if (config.preference) data.loss = preference_loss(*config.preference);
  add_references("training", training);
  if (training.mismatched) data.mismatched = std::make_unique<Loader>(std::move(training.mismatched), order, loading);
  if (data.loss) loading.loss = data.loss.get();
  data.training = std::make_unique<Loader>(std::move(training.rows), order, loading);
  if (!config.validates()) return data;
  if (!validation.rows) {
    options.files = config.data.validation;
    options.weights.clear();
    options.tail = PartialWindow::keep;
    validation = join(open("data.validation"));
  }
  tell(communicator, "validation data: ", *validation.rows);
  add_references("validation", validation);
  if (validation.mismatched) data.mismatched_validation = loader_of_tokens(std::move(validation.mismatched));
  data.validation = validation_loader(std::move(validation.rows), *loading.loss);
  return data;
}

void print_preview(const Config& config, const ModelConfig& model, const std::optional<Tokenizer>& tokenizer,
                   const PreviewOptions& preview) {
  for (const EncodedExample& example : preview_examples(options_of(config, model, tokenizer), preview.examples))
    std::cout << (preview.json ? preview_json(example) : preview_text(example, *tokenizer)) << '\n';
}

void check_first_example(const Config& config, const ModelConfig& model, const std::optional<Tokenizer>& tokenizer) {
  DataOptions options = options_of(config, model, tokenizer);
  std::erase_if(options.files, [](const std::string& file) { return !data_kind(file).starts_with("json"); });
  options.weights.clear();
  for (const std::string& file : std::exchange(options.files, {})) {
    options.files = {file};
    preview_examples(options, options.use == ExampleUse::pair ? 2 : 1);
  }
}

namespace {

std::int64_t longest_of(const std::shared_ptr<const RowSource>& rows) {
  std::int64_t longest = 0;
  for (std::int64_t i = 0; rows && i < rows->size(); ++i) longest = std::max(longest, rows->length(i));
  return longest;
}

}  // namespace

TrainingRows count_training_rows(const Config& config, const ModelConfig& model,
                                 const std::optional<Tokenizer>& tokenizer, const std::string& cache_folder,
                                 Communicator& communicator) {
  DataOptions options = options_of(config, model, tokenizer);
  options.cache_folder = cache_folder;
  std::vector<RowSet> sets =
      open_sets(options, "data.train", config, config.training.global_batch_size.value_or(2), communicator);
  TrainingRows counts;
  for (const RowSet& set : sets)
    for (const auto& rows : {set.rows, set.mismatched}) counts.longest = std::max(counts.longest, longest_of(rows));
  if (config.data.validation_fraction > 0) all_or_none(communicator, [&] { hold_out(config, sets); });
  const std::shared_ptr<const RowSource> rows = join(sets).rows;
  counts.rows = rows->size();
  for (std::int64_t i = 0; i < counts.rows; ++i) counts.tokens += rows->length(i);
  return counts;
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
