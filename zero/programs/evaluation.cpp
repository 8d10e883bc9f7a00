#include "zero/programs/evaluation.h"

#include <ATen/ATen.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/files/lookup.h"
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
#include "zero/data/open_rows.h"
#include "zero/data/rows/loader.h"
#include "zero/train/told_numbers.h"

namespace zero {
namespace {

constexpr std::int64_t usual_seq_len = 1024;

/// The folder for token caches: the user's, or a temporary one of rank 0 that is removed at the end.
class CacheFolder {
 public:
  CacheFolder(Job& job, const std::string& named) : mine_(named.empty() && job.rank() == 0), path_(named) {
    if (!named.empty()) return;
    all_or_none(job.control(), [&] {
      if (job.rank() == 0) path_ = make();
    });
    path_ = broadcast_text(job.control(), path_, 0);
  }
  ~CacheFolder() {
    std::error_code none;
    if (mine_) std::filesystem::remove_all(path_, none);
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  static std::string make() {
    std::string name = (std::filesystem::temp_directory_path() / "zero-evaluate-XXXXXX").string();
    if (!mkdtemp(name.data()))
      throw InputError(text(name, ": cannot be made: ", std::strerror(errno), "; name a folder by --cache"));
    return name;
  }

  bool mine_;
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

  std::shared_ptr<const RowSource> open(const std::string& file, Communicator& communicator) {
    options_.files = {file};
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
    options_.vocab_size = source.config.vocab_size;
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

}  // namespace

double Evaluation::perplexity() const { return std::exp(loss); }

std::vector<Evaluation> evaluate(Job& job, const EvaluationOptions& options) {
  ModelSource source;
  Model model;
  all_or_none(job.control(), [&] {
    source = open_model(resolve(options.place));
    model = frozen_model(source.config);
    source.weights->check(tensors_of(model));
    if (job.rank() == 0) source.weights->check_values();
  });
  const CacheFolder cache(job, options.cache);
  Data data(source, options, cache.path(), job);
  Communicator& communicator = job.communicator();
  Mesh mesh(communicator);
  const std::string& precision = options.precision.empty() ? source.precision : options.precision;
  Engine engine(chain_of(model), mesh, engine_options(precision));
  if (job.rank() == 0) log_info(source.folder, ": evaluated in ", precision);
  all_or_none(job.control(), [&] { engine.load(*source.weights); });

  std::vector<Evaluation> found;
  for (const std::string& file : options.files) {
    const std::shared_ptr<const RowSource> rows = data.open(file, communicator);
    if (job.rank() == 0) log_info(file, ": ", rows->describe());
    const ValidationLoader loader(rows, job.rank(), job.size(), /*local_batch_size=*/1);
    if (loader.trained_tokens() == 0)
      throw InputError(text(file, ": holds no token that counts",
                            options.train_on == "assistant" ? ": --train-on all counts every message" : ""));
    const double sum = summed_loss(engine, loader);
    found.push_back({file, sum / loader.denominator(), loader.trained_tokens(), rows->size()});
  }
  return found;
}

}  // namespace zero
