#include "zero/config/config_rules.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numeric>

#include "base/counted.h"
#include "base/error.h"
#include "base/files/lookup.h"
#include "base/log.h"
#include "models/decoder/decoder.h"
#include "models/families/config_json.h"
#include "models/formats/base_model.h"
#include "models/model_config.h"
#include "models/text/chat_template.h"
#include "zero/config/batch_arithmetic.h"
#include "zero/config/config_keys.h"
#include "zero/config/data_files.h"
#include "zero/config/mistakes.h"
#include "zero/config/nearest_key.h"

namespace zero {
namespace {

[[noreturn]] void refuse(const Config& config, const std::string& key, const std::string& rule) {
  throw InputError(config.where(key) + ": " + rule);
}

// Throws InputError if both keys or neither is given.
void exactly_one(const Config& config, const std::string& a, const std::string& b, const std::string& section) {
  const std::string first = section + "." + a, second = section + "." + b;
  const bool has_first = config.is_given(first), has_second = config.is_given(second);
  if (has_first && has_second)
    refuse(config, second, "contradicts " + a + " (" + config.where(first) + "); give one of the two");
  if (!has_first && !has_second)
    throw InputError(config.source + ": [" + section + "] needs " + a + " or " + b + "; give one of the two");
}

void check_products(const Config& config) {
  if (config.training.matmul_precision != "highest" && config.training.precision != "fp32")
    refuse(config, "training.matmul_precision",
           "is for fp32 runs, and training.precision is \"" + config.training.precision +
               "\", which is faster still: leave it out, or give training.precision = \"fp32\"");
}

void check_reproducible(const Config& config) {
  if (!config.job.over_ranks() && config.job.reproducible_rows != 1)
    refuse(config, "job.reproducible_rows", "is for job.reproducible = \"ranks\"; set that, or leave it out");
  if (config.job.over_ranks() && config.zero.gradient_dtype == "bf16")
    refuse(config, "zero.gradient_dtype",
           "rounds sums that job.reproducible = \"ranks\" keeps in fp32: leave it out, or give \"fp32\"");
  if (config.job.over_ranks() && config.activation_checkpoint.mlp_tokens > 0)
    refuse(config, "activation_checkpoint.mlp_tokens",
           "adds gradients tile by tile, and job.reproducible = \"ranks\" promises the sums of whole rows");
  for (const auto& [key, ranks] :
       {std::pair("parallel.tensor", config.parallel.tensor), std::pair("parallel.context", config.parallel.context)})
    if (config.job.over_ranks() && ranks > 1)
      refuse(
          config, key,
          "adds parts of a sum in an order that depends on the ranks, which job.reproducible = \"ranks\" does not allow");
}

// Tries presets and their fields here, so that the error names the line.
void check_model(const Config& config) {
  exactly_one(config, "preset", "path", "model");
  if (config.model.path) {
    if (!config.model.fields.empty())
      refuse(config, "model." + config.model.fields.begin()->first,
             "fields of config.json may be set with preset only; with path the directory's config.json decides");
    return;
  }
  std::string key = "model.preset";
  try {
    ModelConfig model = architecture_of(*config.model.preset);
    for (const auto& [name, json] : config.model.fields) {
      key = "model." + name;
      set_model_field(model, name, json);
    }
    key = "model.preset";
    validate(model, "[model]");
    validate_for_model(config, model);
  } catch (const InputError& error) {
    const std::string what = error.what();
    for (const char* place : {"training.seq_len", "training.local_batch_size", "job.reproducible_rows", "model.preset",
                              "parallel.tensor", "parallel.context", "parallel.pipeline", "parallel.schedule"})
      if (what.starts_with(config.where(place) + ": ")) throw;
    refuse(config, key, what);
  }
}

void check_weights(const Config& config) {
  const std::vector<double>& weights = config.data.weights;
  if (weights.empty()) return;
  const std::size_t files = config.data.train.size();
  if (weights.size() != files)
    refuse(config, "data.weights",
           text("has ", weights.size(), weights.size() == 1 ? " number" : " numbers", " for ", files,
                files == 1 ? " file" : " files", " of data.train: name one for each"));
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::size_t i = 0; i < files; ++i)
    if (weights[i] < 1e-6 * sum)  // SourceTurns rounds to such parts
      refuse(config, "data.weights",
             text("gives ", config.data.train[i], " less than a millionth of the rows: leave the file out, or raise ",
                  weights[i]));
}

void check_data(const Config& config) {
  const auto check = [&](const std::vector<std::string>& files, const std::string& key) {
    const auto examples =
        std::ranges::find_if(files, [](const std::string& file) { return data_kind(file) == "jsonl"; });
    for (const std::string& file : files) {
      if (data_kind(file).empty()) throw InputError(where_of(config, key, file) + " " + why_no_data_name(file));
      if (data_kind(file) != "jsonl" && examples != files.end())
        throw InputError(where_of(config, key, file) + " is a stream of tokens (.txt, .bin), and " + *examples +
                         " holds examples (.jsonl, .json): name files of one kind");
      if (data_kind(file) != "jsonl" && config.preference)
        throw InputError(
            where_of(config, key, file) +
            " is a stream of tokens, and [preference] trains on answers, in .jsonl or .json files: name such "
            "files, or leave [preference] out");
      if (data_kind(file) != "bin" && config.model.preset && config.data.tokenizer.empty())
        throw InputError(
            where_of(config, key, file) +
            " is text, and a preset has no tokenizer: give [data] tokenizer, a tokenizer.json or a SentencePiece model");
    }
  };
  check(config.data.train, "data.train");
  check(config.data.validation, "data.validation");
  if (const std::string& name = config.data.chat_template; !name.empty() && !ChatTemplate::is_choice(name))
    refuse(config, "data.chat_template",
           "is none of the templates known here, and no file with one" + choice_among(name, ChatTemplate::names()));
  const bool holds_out = config.data.validation_fraction > 0;
  if (config.training.validation_interval > 0 && config.data.validation.empty() && !holds_out)
    refuse(config, "training.validation_interval", "needs files in [data] validation, or a [data] validation_fraction");
  if (holds_out && !config.data.validation.empty())
    refuse(config, "data.validation_fraction",
           "holds out training rows, and [data] validation names files: leave one out");
  if (holds_out && !config.is_given("training.validation_interval"))
    refuse(config, "data.validation_fraction",
           "needs [training] validation_interval, the steps between validations (0: never)");
  if (!config.data.validation.empty() && !config.is_given("training.validation_interval"))
    refuse(config, "data.validation", "needs [training] validation_interval, the steps between validations (0: never)");
}

void check_schedule(const Config& config) {
  if (config.lr_scheduler.warmup_steps > 0 && config.lr_scheduler.warmup_ratio > 0)
    refuse(config, "lr_scheduler.warmup_ratio",
           "contradicts warmup_steps (" + config.where("lr_scheduler.warmup_steps") + "); give one of the two");
  exactly_one(config, "steps", "epochs", "training");
  if (config.training.steps) validate_for_steps(config, *config.training.steps, "[training] steps");
}

// A rollback needs checkpoints to return to.
void check_nonfinite(const Config& config) {
  if (config.training.on_nonfinite == "rollback" && !config.checkpoint.is_regular())
    refuse(config, "training.on_nonfinite",
           "needs checkpoints to go back to: give [checkpoint] interval or every_minutes");
}

void check_offload(const Config& config) {
  if (config.offload.parameters != "none" && config.zero.stage != 3)
    refuse(config, "offload.parameters", "needs [zero] stage = 3, but stage is " + std::to_string(config.zero.stage));
  for (const std::string key : {"offload.optimizer", "offload.parameters"}) {
    const std::string& tier = key == "offload.optimizer" ? config.offload.optimizer : config.offload.parameters;
    if (tier == "nvme" && config.offload.nvme_dir.empty())
      refuse(config, key, "needs [offload] nvme_dir, a folder on the disk to use");
  }
  const std::string& mode = config.activation_checkpoint.mode;
  if (config.offload.activations != "none" && mode != "full" && mode != "selective")
    refuse(config, "offload.activations",
           "moves the inputs of recomputed blocks: needs [activation_checkpoint] mode = \"full\" or \"selective\"");
}

void check_tiles(const Config& config) {
  if (config.activation_checkpoint.mlp_tokens > 0 && config.parallel.tensor > 1)
    refuse(config, "activation_checkpoint.mlp_tokens",
           "runs an MLP by tiles of tokens, and [parallel] tensor divides its width: they exclude each other");
}

void check_lora(const Config& config) {
  if (!config.lora) {
    if (config.zero.frozen != Config().zero.frozen)
      refuse(config, "zero.frozen", "concerns the frozen base of [lora], a section that is missing");
    return;
  }
  if (config.lora->double_quantization && config.lora->quantization != "nf4")
    refuse(config, "lora.double_quantization", "needs [lora] quantization = \"nf4\"");
}

void check_preference(const Config& config) {
  if (!config.preference) return;
  const PreferenceSection& preference = *config.preference;
  for (const std::string& key : keys_of("preference"))
    if (config.is_given("preference." + key) && !preference.reads(key))
      refuse(config, "preference." + key,
             text("is not for preference.method = \"", preference.method, "\": leave it out"));
  if (!preference.loss_weights.empty() && preference.loss_weights.size() != preference.loss_type.size())
    refuse(config, "preference.loss_weights",
           text("has ", preference.loss_weights.size(), " numbers for ", preference.loss_type.size(),
                " terms of loss_type: name one for each"));
  const auto has_any = [&](std::initializer_list<const char*> terms) {
    return std::ranges::any_of(terms, [&](const char* term) {
      return std::ranges::find(preference.loss_type, term) != preference.loss_type.end();
    });
  };
  if (preference.label_smoothing > 0 && !has_any({"sigmoid", "sigmoid_norm", "robust", "exo_pair"}))
    refuse(config, "preference.label_smoothing",
           "is for the terms sigmoid, sigmoid_norm, robust and exo_pair of loss_type: leave it out");
  if (preference.method == "dpo" && has_any({"exo_pair"}) && preference.label_smoothing == 0)
    refuse(config, "preference.loss_type", "\"exo_pair\" needs [preference] label_smoothing above 0, such as 0.001");
  if (config.data.packing)
    refuse(config, "data.packing", "packs single examples, and [preference] trains on answers: leave it out");
  if (config.data.train_on != "assistant")
    refuse(config, "data.train_on", "is for single examples, and [preference] trains on answers: leave it out");
}

void check_samples(const Config& config) {
  if (config.metrics.samples.empty()) return;
  if (!config.validates())
    refuse(config, "metrics.samples",
           "is continued at each validation: needs [data] validation or validation_fraction, and [training] "
           "validation_interval");
  for (const auto& [ranks, axis] :
       {std::pair(config.parallel.pipeline, "pipeline"), std::pair(config.parallel.context, "context")})
    if (ranks > 1)
      refuse(config, "metrics.samples",
             text("cannot be continued with [parallel] ", axis, " = ", ranks,
                  ", which divides what generation needs in one place: leave it out, and try checkpoints with "
                  "zero_generate"));
}

void check_best(const Config& config) {
  if (config.validates()) return;
  for (const auto& [is_on, key] : {std::pair(config.checkpoint.keep_best, "checkpoint.keep_best"),
                                   std::pair(config.training.patience > 0, "training.patience")})
    if (is_on)
      refuse(config, key,
             "follows the loss of validations: needs [data] validation or validation_fraction, and [training] "
             "validation_interval");
}

}  // namespace

void check_contradictions(const Config& config) {
  Mistakes mistakes;
  for (const auto check :
       {check_model, check_schedule, check_data, check_weights, check_nonfinite, check_offload, check_tiles, check_lora,
        check_preference, check_products, check_reproducible, check_samples, check_best})
    mistakes.allow([&] { check(config); });
  mistakes.tell();
}

namespace {

void check_stages(const Config& config, const ModelConfig& model) {
  const ParallelConfig& parallel = config.parallel;
  if (parallel.pipeline == 1) return;
  const bool interleaved = parallel.schedule == "interleaved";
  if (interleaved && model.tie_word_embeddings)
    refuse(config, "parallel.schedule",
           "\"interleaved\" does not support tied embeddings, because their head is on the first stage");
  const std::int64_t chunks = interleaved ? parallel.chunks : 1;
  if (parallel.pipeline * chunks > model.num_hidden_layers)
    refuse(config, "parallel.pipeline",
           text("needs ", parallel.pipeline * chunks, " blocks", interleaved ? ", one for each chunk of a stage" : "",
                ", and the model has ", model.num_hidden_layers));
}

}  // namespace

void validate_for(const Config& config, int ranks) { BatchArithmetic::of(config, ranks); }

void validate_for_model(const Config& config, const ModelConfig& model) {
  constexpr double most_parameters = 1e13,
                   most_bytes = 1e17;  // their sums, and a thousand checkpoints, stay below 2^63
  const double hidden = double(model.hidden_size), layers = double(model.num_hidden_layers),
               vocabulary = double(model.vocab_size);
  const double heads = double(model.num_attention_heads + 2 * model.num_key_value_heads) * double(model.head_dim);
  const double block = hidden * (2 * heads + 3 * double(model.intermediate_size)),
               parameters = layers * block + 2 * vocabulary * hidden;
  if (parameters > most_parameters)
    refuse(config, config.model.path ? "model.path" : "model.preset",
           text("the sizes make about ", parameters, " parameters; at most 1e13 are possible"));
  if (config.training.seq_len > model.max_position_embeddings)
    refuse(config, "training.seq_len",
           text("must be at most the model's context, max_position_embeddings = ", model.max_position_embeddings));
  const int tensor = int(config.parallel.tensor), context = int(config.parallel.context);
  if (const std::string why = why_not_cut(model, tensor); !why.empty()) refuse(config, "parallel.tensor", why);
  if (const std::string why = why_not_swapped(model, tensor, context); !why.empty())
    refuse(config, "parallel.context", why);
  check_stages(config, model);
  const double tokens = double(config.micro_batch_rows()) * double(config.row_tokens());
  const double widths = layers * (4 * hidden + 2 * heads + 4 * double(model.intermediate_size)) + 4 * vocabulary;
  if (4 * tokens * widths > most_bytes)
    refuse(config, config.job.over_ranks() ? "job.reproducible_rows" : "training.local_batch_size",
           text("makes a micro-batch of ", tokens, " tokens, and activations of about ", 4 * tokens * widths,
                " bytes: lower it, or seq_len"));
  const double mask = tokens * double(config.row_tokens());
  if (config.has_documents() && 4 * mask > most_bytes)
    refuse(config, "training.seq_len",
           text("makes masks of ", 4 * mask, " bytes for the documents of a row: lower it, or local_batch_size"));
}

void validate_for_steps(const Config& config, std::int64_t steps, const std::string& why) {
  if (config.lr_scheduler.warmup_steps <= steps) return;
  refuse(config, "lr_scheduler.warmup_steps",
         text("must not exceed the run's ", counted(steps, "step"), " (", why,
              "): the learning rate would never reach lr. Train longer, or "
              "warm up less; for a short trial --set lr_scheduler.warmup_steps=0"));
}

void validate_for_gpu(const Config& config) {
  if (config.parallel.pipeline > 1) refuse(config, "parallel.pipeline", "runs on CPUs so far");
  if (config.metrics.last_traced_step > 0)
    refuse(config, "metrics.trace_steps",
           "traces the host's time, which says little about a GPU: leave it out, and use NVIDIA Nsight Systems (nsys) "
           "there, or set training.device = \"cpu\"");
  if (!config.metrics.samples.empty())
    refuse(config, "metrics.samples",
           "prompts are continued on CPUs so far: leave it out, and try checkpoints with zero_generate, or set "
           "training.device = \"cpu\"");
}

std::string where_of(const Config& config, const std::string& key, const std::string& value) {
  const std::string place = config.where(key);
  for (const std::string& shown : {"=" + value, "\"" + value + "\"", "[\"" + value + "\"]", "[ \"" + value + "\" ]"})
    if (place.ends_with(shown)) return place + ":";
  return place + ": " + value;
}

std::int64_t SchedulerConfig::warmup_of(std::int64_t steps) const {
  return warmup_ratio > 0 ? static_cast<std::int64_t>(std::ceil(double(steps) * warmup_ratio)) : warmup_steps;
}

std::string Config::where(const std::string& key) const {
  if (const auto given = origin.find(key); given != origin.end()) return given->second;
  const std::size_t dot = key.find('.');
  return source + ": [" + key.substr(0, dot) + "] " + key.substr(dot + 1);
}

bool Config::operator==(const Config& o) const {
  return job == o.job && model == o.model && data == o.data && training == o.training && optimizer == o.optimizer &&
         lr_scheduler == o.lr_scheduler && zero == o.zero && parallel == o.parallel && comm == o.comm &&
         activation_checkpoint == o.activation_checkpoint && offload == o.offload && lora == o.lora &&
         preference == o.preference && checkpoint == o.checkpoint && metrics == o.metrics;
}

}  // namespace zero
