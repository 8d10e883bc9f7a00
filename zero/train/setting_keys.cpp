#include "zero/train/setting_keys.h"

#include <optional>
#include <set>

#include "zero/config/setup.h"

namespace zero {
namespace {

// Sections and keys that affect how a result is computed, or how long a run is, but not what a step does.
const std::set<std::string> free_sections{"job",     "zero",       "parallel", "comm", "activation_checkpoint",
                                          "offload", "checkpoint", "metrics"};
const std::set<std::string> free_keys{"training.steps",
                                      "training.epochs",
                                      "training.local_batch_size",
                                      "training.precision",
                                      "training.matmul_precision",
                                      "training.device",
                                      "training.validation_interval",
                                      "data.validation",
                                      "training.on_nonfinite",
                                      "training.max_skipped_steps",
                                      "training.max_rollbacks",
                                      "training.patience",
                                      "model.allow_unused"};
// The fields of config.json from which dropout's keys have their values. Runs that trained without dropout stored them.
const std::set<std::string> dropout_fields{"model.attn_pdrop", "model.embd_pdrop", "model.resid_pdrop"};

}  // namespace

bool is_free(const ConfigKey& key) {
  return key.may_change || free_sections.contains(key.section) || free_keys.contains(key.full_name());
}

bool is_shape(const std::string& key) {
  return key.starts_with("model.") && key != "model.path" && !is_of_dropout(key);
}

bool is_of_adapter(const std::string& key) {
  static const std::set<std::string> keys{"lora.r", "lora.target_modules", "lora.modules_to_save", "lora.use_dora"};
  return keys.contains(key);
}

bool is_of_dropout(const std::string& key) { return key.ends_with("_dropout") || dropout_fields.contains(key); }

bool is_dropout_field(const std::string& key) { return dropout_fields.contains(key); }

const std::map<std::string, std::string>& values_before() {
  static const std::map<std::string, std::string> values{
      {"optimizer.state_dtype", "\"fp32\""}, {"data.validation_fraction", "0.0"}, {"model.embedding_dropout", "0.0"},
      {"model.attention_dropout", "0.0"},    {"model.residual_dropout", "0.0"},   {"data.weights", "[]"},
      {"lr_scheduler.warmup_ratio", "0.0"}};
  return values;
}

std::string text_of(const ConfigKey& key, Config& config) {
  const std::optional<Value> value = read_field(key.field(config));
  return value ? toml_text(*value) : "none";
}

}  // namespace zero
