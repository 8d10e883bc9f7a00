#include "zero/programs/evaluation.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/files/scratch_folder.h"
#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "comm/mesh/mesh.h"
#include "comm/object_collectives.h"
#include "models/families/families.h"
#include "models/text/tokenizer.h"
#include "zero/config/data_files.h"
#include "zero/config/setup.h"
#include "zero/core/chain.h"
#include "zero/core/engine.h"
#include "zero/data/examples/example_use.h"
#include "zero/data/open_rows.h"
#include "zero/data/rows/loader.h"
#include "zero/train/told_numbers.h"

namespace zero {
namespace {

constexpr std::int64_t usual_seq_len = 1024;

/// The folder for token caches: the user's, or a temporary one of rank 0.
class CacheFolder {
 public:
  CacheFolder(Job& job, const std::string& named) : path_(named) {
    if (!named.empty()) return;
    all_or_none(job.control(), [&] {
      if (job.rank() == 0)
        path_ = own_.emplace("evaluate", ScratchOptions{.remedy = "name a folder by --cache"}).path();
    });
    path_ = broadcast_text(job.control(), path_, 0);
  }

  const std::string& path() const { return path_; }

 private:
  std::optional<ScratchFolder> own_;
  std::string path_;
};

/// The model with all parameters frozen, so that ranks hold weights only.
Model frozen_model(const ModelConfig& config) {
  Model model = make_model(config);
  for (const auto& unit : model.units)
    for (Parameter& parameter : unit->parameters()) parameter.trainable = false;
  return model;
}

EngineOptions engine_options(const std::string& precision) {
  EngineOptions engine;
  engine.plan = ShardPlan::for_stage(3);
  engine.precision.compute = type_of_precision(precision);
  engine.precision.master = at::kFloat;
  engine.precision.gradient = at::kFloat;
  return engine;
}

/// Throws InputError for a file that cannot be data, with a remedy.
void require_data(const std::string& file) {
  if (const std::string why = why_no_data_name(file); !why.empty()) throw InputError(file + " " + why);
  if (!is_there(file)) return;  // it is reported when it is opened
  if (const std::string why = why_no_data_content(file); !why.empty()) throw InputError(file + " " + why);
}

bool is_ids(const std::string& file) { return data_kind(file) == "bin"; }

/// Reads all files.
class Data {
 public:
  Data(const ModelSource& source, const EvaluationOptions& options, const std::string& cache, Job& job) {
    all_or_none(job.control(), [&] { prepare(source, options, cache, job); });
  }

  std::int64_t seq_len() const { return options_.seq_len; }

  std::shared_ptr<const RowSource> open(const std::string& file, ExampleUse use, PairTargets targets,
                                        Communicator& communicator) {
    options_.files = {file};
    options_.use = use, options_.pairs.targets = targets;
    return open_rows(options_, communicator);
  }

 private:
  void prepare(const ModelSource& source, const EvaluationOptions& options, const std::string& cache, Job& job) {
    options_.token_width = token_width_of(options.token_dtype);
    options_.seq_len =
        options.seq_len > 0 ? options.seq_len : std::min(usual_seq_len, source.config.max_position_embeddings);
    if (options_.seq_len > source.config.max_position_embeddings)
      throw InputError(text("--seq-len ", options_.seq_len, ": the model's context is ",
                            source.config.max_position_embeddings, " tokens"));
    options_.tail = PartialWindow::keep;
    options_.purpose = RowPurpose::evaluation;
    options_.vocab_size = source.config.vocab_size;
    options_.pairs.shares_prompts = takes_trunks(source.config, options_.seq_len);
    options_.cache_folder = cache;
    options_.cores = job.node_cores();
    EncoderOptions& conversations = options_.conversations;
    conversations.model_directory = source.options.tokenizer.settings;
    const bool is_named = !options.chat_template.empty();
    conversations.chat_template = is_named ? options.chat_template : source.options.tokenizer.chat_template;
    conversations.template_place = is_named                              ? "--chat-template"
                                   : conversations.chat_template.empty() ? ""
                                                                         : source.folder;
    conversations.template_setting = "--chat-template";
    conversations.train_on = train_on_of(options.train_on);
    for (const std::string& file : options.files) require_data(file);
    if (std::all_of(options.files.begin(), options.files.end(), is_ids)) return;
    if (!Tokenizer::lies_at(source.options.tokenizer.tokenizer))
      throw InputError(text(source.folder, ": holds no tokenizer, and texts need one: name it by --tokenizer"));
    if (job.nodes() > 1 && options.cache.empty())
      throw InputError("texts on several nodes need a folder that all of them see: name it by --cache");
    tokenizer_ = Tokenizer::load(source.options.tokenizer.tokenizer);
    options_.encoder = text_encoder_of(*tokenizer_);
    options_.tokenizer = &*tokenizer_;
  }

  std::optional<Tokenizer> tokenizer_;
  DataOptions options_;
};

/// Returns the sum of all sequences' losses, in file order.
double summed_loss(Engine& engine, const ValidationLoader& loader) {
  std::vector<double> losses;
  for (std::int64_t turn = 0; turn < loader.micro_batches(); ++turn) {
    const Batch batch = loader.batch(turn);
    ForwardContext context;
    context.batch = &batch;
    context.loss = &loader.loss();
    losses.push_back(engine.evaluate(context).item<double>());
  }
  return sum_of_turns(told_numbers(engine.host(), losses, {Phase::validate}), 0);
}

/// A file as it is evaluated.
struct OpenFile {
  std::string name;
  std::shared_ptr<const RowSource> rows;
  std::optional<PreferenceEvaluation> preference = {};
};

/// How the answers of a file are judged, if its examples are pairs or judged answers.
PreferenceSource source_for(PreferenceSource source, ExampleUse use, const std::string& file) {
  if (use == ExampleUse::judged && !source.is_named) source.settings.method = "kto";
  if (use == ExampleUse::judged && source.settings.takes_pairs())
    throw InputError(text(file, ": holds judged answers, and ", source.settings.method,
                          " compares pairs: name --preference kto, or a file of pairs"));
  return source;
}

OpenFile open_file_of(const std::string& file, const PreferenceSource& preference, Data& data, Job& job) {
  ExampleUse use = ExampleUse::single;
  PreferenceSource source;
  all_or_none(job.control(), [&] {
    if (!is_there(file)) return;  // open_rows() refuses it
    use = use_of_examples(file);
    if (use != ExampleUse::single) source = source_for(preference, use, file);
  });
  const bool judges = use != ExampleUse::single;
  if (judges && !source.settings.takes_pairs()) use = ExampleUse::judged;
  const bool with_prompts = judges && source.settings.method == "orpo";
  OpenFile opened{file, data.open(file, use, with_prompts ? PairTargets::chosen_prompts : PairTargets::answers,
                                  job.communicator())};
  const std::string words = opened.rows->describe();  // rows of examples name their file
  if (job.rank() == 0) log_info(words.starts_with(file) ? "" : file + ": ", words);
  if (const std::string warning = opened.rows->warning(); job.rank() == 0 && !warning.empty())
    log_warning(file, ": ", warning);
  if (!judges) return opened;
  opened.preference.emplace(opened.rows, source);
  return opened;
}

/// A model whose weights are checked, and not read yet.
struct CheckedModel {
  ModelSource source;
  Model model;
};

CheckedModel checked_model(const ModelPlace& place, Job& job) {
  CheckedModel checked{open_model(place), {}};
  checked.model = frozen_model(checked.source.config);
  checked.source.weights->check(tensors_of(checked.model));
  if (job.rank() == 0) checked.source.weights->check_values();
  return checked;
}

/// Calls `work` with an engine that holds the model's weights. Collective.
void with_engine(const CheckedModel& of, Mesh& mesh, const std::string& precision, Job& job,
                 const std::function<void(Engine&)>& work) {
  Engine engine(chain_of(of.model), mesh, engine_options(precision));
  all_or_none(job.control(), [&] { engine.load(*of.source.weights); });
  work(engine);
}

/// Throws InputError if the reference cannot read the rows that were opened for the model.
void check_reference(const std::string& name, const ModelConfig& reference, const ModelConfig& model,
                     std::int64_t seq_len) {
  constexpr const char* remedy = ": name the model with which training began by --reference";
  if (reference.vocab_size < model.vocab_size)
    throw InputError(
        text(name, ": the reference has ", reference.vocab_size, " ids and the model ", model.vocab_size, remedy));
  if (reference.max_position_embeddings < seq_len)
    throw InputError(text(name, ": the reference's context is ", reference.max_position_embeddings,
                          " tokens and the rows may have ", seq_len, ": lower --seq-len"));
  if (takes_trunks(model, seq_len) && !takes_trunks(reference, seq_len))
    throw InputError(text(name, ": the reference's attention windows or rotary scaling are not the model's", remedy));
}

/// Computes the reference of all files that need one. Collective.
void take_references(std::vector<OpenFile>& files, const ModelPlace& place, const ModelConfig& model,
                     std::int64_t seq_len, Mesh& mesh, const std::string& precision, Job& job) {
  CheckedModel reference;
  all_or_none(job.control(), [&] {
    reference = checked_model(place, job);
    check_reference(place.model, reference.source.config, model, seq_len);
  });
  if (job.rank() == 0) log_info(reference.source.folder, ": the reference, in ", precision);
  with_engine(reference, mesh, precision, job, [&](Engine& engine) {
    for (OpenFile& file : files)
      if (file.preference && file.preference->needs_reference()) file.preference->take_reference(engine);
  });
}

Evaluation evaluation_of(OpenFile& file, Engine& engine, const EvaluationOptions& options, const Job& job) {
  if (file.preference) {
    Evaluation found{file.name};
    found.preference = file.preference->evaluate(engine);
    found.tokens = found.preference->tokens, found.sequences = found.preference->rows;
    return found;
  }
  const ValidationLoader loader(file.rows, job.rank(), job.size(), /*local_batch_size=*/1);
  if (loader.trained_tokens() == 0)
    throw InputError(text(file.name, ": holds no token that counts",
                          options.train_on == "assistant" ? ": --train-on all counts every message" : ""));
  return {file.name, summed_loss(engine, loader) / loader.denominator(), loader.trained_tokens(), file.rows->size()};
}

/// Warns of options that no file reads.
void log_options_without_effect(const EvaluationOptions& options) {
  const auto any = [&](const auto& is_kind) {
    return std::ranges::any_of(options.files, [&](const std::string& file) { return is_there(file) && is_kind(file); });
  };
  const auto warn = [](bool given, const char* option, const char* wanted) {
    if (given) log_warning(option, " has no effect: no file holds ", wanted);
  };
  const auto holds_examples = [](const std::string& file) { return data_kind(file).starts_with("json"); };
  const bool examples = any(holds_examples),
             judged = any([&](const std::string&file) {
               return holds_examples(file) && use_of_examples(file) != ExampleUse::single;
             });
  warn(!examples && !options.chat_template.empty(), "--chat-template", "conversations");
  warn(!examples && options.train_on != EvaluationOptions().train_on, "--train-on", "conversations");
  warn(!judged && !options.preference.method.empty(), "--preference", "preferences");
  warn(!judged && options.preference.beta.has_value(), "--beta", "preferences");
  warn(!judged && !options.preference.reference.empty(), "--reference", "preferences");
  warn(!any(is_ids) && options.token_dtype != EvaluationOptions().token_dtype, "--token-dtype", "ids (.bin)");
}

}  // namespace

double Evaluation::perplexity() const { return std::exp(loss); }

std::vector<Evaluation> evaluate(Job& job, const EvaluationOptions& options) {
  CheckedModel model;
  PreferenceSource preference;
  all_or_none(job.control(), [&] {
    const ModelPlace place = resolve(options.place);
    model = checked_model(place, job);
    preference = preference_source_of(options.place, place, options.preference);
  });
  const ModelSource& source = model.source;
  const CacheFolder cache(job, options.cache);
  Data data(source, options, cache.path(), job);
  std::vector<OpenFile> files;
  for (const std::string& file : options.files) files.push_back(open_file_of(file, preference, data, job));
  on_first(job.control(), [&] { log_options_without_effect(options); });

  Mesh mesh(job.communicator());
  const std::string& precision = options.precision.empty() ? source.precision : options.precision;
  const bool compares = std::ranges::any_of(
      files, [](const OpenFile& file) { return file.preference && file.preference->needs_reference(); });
  if (compares && preference.reference)
    take_references(files, *preference.reference, source.config, data.seq_len(), mesh, precision, job);
  if (compares && !preference.reference && job.rank() == 0)
    log_info("no reference is known, so pairs are judged by log p alone: --reference names a model to compare with");
  if (job.rank() == 0) log_info(source.folder, ": evaluated in ", precision);
  std::vector<Evaluation> found;
  with_engine(model, mesh, precision, job, [&](Engine& engine) {
    for (OpenFile& file : files) found.push_back(evaluation_of(file, engine, options, job));
  });
  return found;
}

}  // namespace zero
