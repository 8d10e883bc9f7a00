#include "zero/train/config_rules.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "comm/error.h"
#include "models/model_config.h"
#include "zero/train/batch_arithmetic.h"
#include "zero/train/config_keys.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const Config& config, const std::string& key, const std::string& rule) {
  throw InputError(config.where(key) + ": " + rule);
}

// Refuses both and neither.
void exactly_one(const Config& config, const std::string& a, const std::string& b, const std::string& section) {
  const std::string first = section + "." + a, second = section + "." + b;
  const bool has_first = config.is_given(first), has_second = config.is_given(second);
  if (has_first && has_second)
    refuse(config, second, "contradicts " + a + " (" + config.where(first) + "); give one of the two");
  if (!has_first && !has_second)
    throw InputError(config.source + ": [" + section + "] needs " + a + " or " + b + "; give one of the two");
}

// Presets and their fields are tried here, so that a mistake is told with its line.
void check_model(const Config& config) {
  exactly_one(config, "preset", "path", "model");
  if (config.model.path) {
    if (!config.model.fields.empty())
      refuse(config, "model." + config.model.fields.begin()->first,
             "fields of config.json may stand beside preset only; with path the directory's config.json decides");
    return;
  }
  std::string key = "model.preset";
  try {
    ModelConfig model = preset_config(*config.model.preset);
    for (const auto& [name, json] : config.model.fields) {
      key = "model." + name;
      set_model_field(model, name, json);
    }
    key = "model.preset";
    validate(model, "[model]");
    if (config.is_given("training.seq_len")) validate_for_context(config, model.max_position_embeddings);
  } catch (const InputError& error) {
    const std::string what = error.what();
    if (what.rfind(config.where("training.seq_len"), 0) == 0) throw;
    refuse(config, key, what);
  }
}

void check_data(const Config& config) {
  const auto check = [&](const std::vector<std::string>& files, const std::string& key) {
    for (const std::string& file : files) {
      if (data_kind(file).empty()) refuse(config, key, file + " must end in .txt, .jsonl or .bin: the ending tells how it is read");
      if (data_kind(file) != "bin" && config.model.preset && config.data.tokenizer.empty())
        refuse(config, key, file + " is text, and a preset has no tokenizer: give [data] tokenizer, a SentencePiece model");
    }
  };
  check(config.data.train, "data.train");
  check(config.data.validation, "data.validation");
  if (config.training.validation_interval > 0 && config.data.validation.empty())
    refuse(config, "training.validation_interval", "needs files in [data] validation");
}

void check_schedule(const Config& config) {
  exactly_one(config, "steps", "epochs", "training");
  if (config.training.steps && config.lr_scheduler.warmup_steps > *config.training.steps)
    refuse(config, "lr_scheduler.warmup_steps",
           "must not exceed [training] steps = " + std::to_string(*config.training.steps));
}

void check_offload(const Config& config) {
  if (config.offload.parameters != "none" && config.zero.stage != 3)
    refuse(config, "offload.parameters", "needs [zero] stage = 3, but stage is " + std::to_string(config.zero.stage));
  for (const std::string key : {"offload.optimizer", "offload.parameters"}) {
    const std::string& tier = key == "offload.optimizer" ? config.offload.optimizer : config.offload.parameters;
    if (tier == "nvme" && config.offload.nvme_dir.empty()) refuse(config, key, "needs [offload] nvme_dir, a folder on the disk to use");
  }
}

void check_lora(const Config& config) {
  if (!config.lora) {
    if (config.zero.frozen != Config().zero.frozen) refuse(config, "zero.frozen", "concerns the frozen base of [lora], a section that is missing");
    return;
  }
  if (config.lora->double_quantization && config.lora->quantization == "none")
    refuse(config, "lora.double_quantization", "needs [lora] quantization = \"nf4\"");
}

void need_file(const Config& config, const std::string& key, const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) refuse(config, key, path + " does not exist (paths are relative to the working directory)");
  if (!fs::is_regular_file(path, ignored)) refuse(config, key, path + " is not a file");
}

void need_directory(const Config& config, const std::string& key, const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) refuse(config, key, path + " does not exist (paths are relative to the working directory)");
  if (!fs::is_directory(path, ignored)) refuse(config, key, path + " is not a directory");
}

// The output directory is made later; the nearest part of its path that exists tells now whether it can be.
void need_place_for(const Config& config, const std::string& key, const std::string& path) {
  std::error_code ignored;
  fs::path part = fs::absolute(path, ignored);
  while (!fs::exists(part, ignored) && part.has_relative_path()) part = part.parent_path();
  if (!fs::is_directory(part, ignored)) refuse(config, key, part.filename().string() + " is not a directory");
  if (access(part.c_str(), W_OK | X_OK) != 0) refuse(config, key, part.string() + " is a directory that you may not write to");
}

}  // namespace

std::string data_kind(const std::string& path) {
  const std::string extension = fs::path(path).extension().string();
  for (const char* kind : {"txt", "jsonl", "bin"})
    if (extension == std::string(".") + kind) return kind;
  return "";
}

void check_contradictions(const Config& config) {
  check_model(config);
  check_schedule(config);
  check_data(config);
  check_offload(config);
  check_lora(config);
}

void validate_for(const Config& config, int ranks) {
  BatchArithmetic::of(config, ranks);
  const std::int64_t degree = config.zero.shard_degree;
  if (degree == 0 || ranks % degree == 0) return;
  std::string divisors;
  for (int d = 1; d <= ranks; ++d)
    if (ranks % d == 0) divisors += (divisors.empty() ? "" : ", ") + std::to_string(d);
  refuse(config, "zero.shard_degree", "must divide the number of ranks, " + std::to_string(ranks) + ": 0 (all), " + divisors);
}

void validate_for_context(const Config& config, std::int64_t max_position_embeddings) {
  if (config.training.seq_len > max_position_embeddings)
    refuse(config, "training.seq_len",
           "must be at most the model's context, max_position_embeddings = " + std::to_string(max_position_embeddings));
}

void check_files(const Config& config) {
  need_place_for(config, "job.output_dir", config.job.output_dir);
  if (config.model.path) {
    need_directory(config, "model.path", *config.model.path);
    std::error_code ignored;
    if (!fs::exists(fs::path(*config.model.path) / "config.json", ignored))
      refuse(config, "model.path", *config.model.path + " has no config.json; it must be a Hugging Face model directory");
  }
  for (const std::string& file : config.data.train) need_file(config, "data.train", file);
  for (const std::string& file : config.data.validation) need_file(config, "data.validation", file);
  if (!config.data.tokenizer.empty()) need_file(config, "data.tokenizer", config.data.tokenizer);
  if (config.lora && !config.lora->adapter.empty()) need_directory(config, "lora.adapter", config.lora->adapter);
}

void refuse_unsupported(const Config& config) {
  const auto refuse_if = [&](bool used, const std::string& key) {
    if (used) refuse(config, key, "is not supported by this version");
  };
  const Config defaults;
  refuse_if(config.zero.reduce_dtype != defaults.zero.reduce_dtype, "zero.reduce_dtype");
}

std::string Config::where(const std::string& key) const {
  if (const auto given = origin.find(key); given != origin.end()) return given->second;
  const std::size_t dot = key.find('.');
  return source + ": [" + key.substr(0, dot) + "] " + key.substr(dot + 1);
}

bool Config::operator==(const Config& o) const {
  return job == o.job && model == o.model && data == o.data && training == o.training && optimizer == o.optimizer &&
         lr_scheduler == o.lr_scheduler && zero == o.zero && comm == o.comm && activation_checkpoint == o.activation_checkpoint &&
         offload == o.offload && lora == o.lora && checkpoint == o.checkpoint && metrics == o.metrics;
}

}  // namespace zero
