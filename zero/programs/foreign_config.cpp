#include "zero/programs/foreign_config.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/json_text.h"
#include "base/log.h"
#include "zero/config/config_keys.h"
#include "zero/config/foreign_keys.h"
#include "zero/programs/yaml_text.h"

namespace zero {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_bytes = 1 << 20;

/// Converts the value of one key. Returns why it has no effect; empty if it has one.
using Converter = std::function<std::string(const Json& value, ForeignConfig& config)>;
using KeyTable = std::map<std::string, Converter>;

std::string words_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

void set(ForeignConfig& config, const std::string& key, const std::string& toml) {
  config.overrides.push_back(key + "=" + toml);
}

Converter number(const std::string& key) {
  return [=](const Json& value, ForeignConfig& config) -> std::string {
    if (!value.is_number()) return "no number: " + words_of(value);
    set(config, key, value.dump());
    return "";
  };
}

Converter flag(const std::string& key, const std::string& if_true, const std::string& if_false = "") {
  return [=](const Json& value, ForeignConfig& config) -> std::string {
    if (!value.is_boolean() && words_of(value) != "auto" && words_of(value) != "unsloth")
      return "neither true nor false: " + words_of(value);
    const bool yes = value.is_boolean() ? value.get<bool>() : words_of(value) == "auto" || words_of(value) == "unsloth";
    const std::string& toml = yes ? if_true : if_false;
    if (toml.empty()) return "off, as here";
    set(config, key, toml);
    return "";
  };
}

Converter word(const std::string& key, const std::map<std::string, std::string>& known) {
  return [=](const Json& value, ForeignConfig& config) -> std::string {
    std::string name = words_of(value);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return char(std::tolower(c)); });
    const auto found = known.find(name);
    if (found == known.end()) return "\"" + words_of(value) + "\" has no counterpart for " + key;
    set(config, key, toml_text(found->second));
    return "";
  };
}

Converter absent(const std::string& why) {
  return [=](const Json&, ForeignConfig&) { return why; };
}

Converter text_into(std::string ForeignConfig::*field) {
  return [=](const Json& value, ForeignConfig& config) -> std::string {
    if (!value.is_string()) return "no word";
    config.*field = value.get<std::string>();
    return "";
  };
}

/// Precision: only one of the tools' two flags is on.
Converter precision(const std::string& name) { return flag("training.precision", toml_text(name)); }

Converter betas_part(int index) {
  return [=](const Json& value, ForeignConfig& config) -> std::string {
    if (!value.is_number()) return "no number";
    for (std::string& set : config.overrides)
      if (set.starts_with("optimizer.betas=[")) {
        const std::size_t begin = set.find('[') + 1, comma = set.find(','), end = set.find(']');
        const std::string first = set.substr(begin, comma - begin), second = set.substr(comma + 2, end - comma - 2);
        set = "optimizer.betas=[" + (index == 0 ? value.dump() : first) + ", " + (index == 1 ? value.dump() : second) +
              "]";
        return "";
      }
    set(config, "optimizer.betas", index == 0 ? "[" + value.dump() + ", 0.999]" : "[0.9, " + value.dump() + "]");
    return "";
  };
}

const std::map<std::string, std::string>& optimizers() {
  static const std::map<std::string, std::string> names{{"adam", "adamw"},
                                                        {"adamw", "adamw"},
                                                        {"adamw_torch", "adamw"},
                                                        {"adamw_hf", "adamw"},
                                                        {"adamw_torch_fused", "adamw"},
                                                        {"fusedadam", "adamw"},
                                                        {"adamw_8bit", "adamw8bit"},
                                                        {"adamw_bnb_8bit", "adamw8bit"},
                                                        {"paged_adamw_8bit", "adamw8bit"},
                                                        {"sgd", "sgd"},
                                                        {"lion", "lion"},
                                                        {"adafactor", "adafactor"},
                                                        {"prodigy", "prodigy"},
                                                        {"muon", "muon"},
                                                        {"paged_adamw_32bit", "adamw"},
                                                        {"cpuadam", "adamw"},
                                                        {"lion_pytorch", "lion"}};
  return names;
}

const std::map<std::string, std::string>& places() {
  static const std::map<std::string, std::string> names{{"cpu", "cpu"}, {"nvme", "nvme"}, {"none", "none"}};
  return names;
}

/// Copies every value into the table's converter, or says why not. `walks`: sections that are objects.
void walk(const Json& tree, const std::string& prefix, const KeyTable& table, ForeignConfig& config,
          const std::function<std::string(const std::string& path)>& why_unknown) {
  for (const auto& [key, value] : tree.items()) {
    const std::string path = prefix.empty() ? key : prefix + "." + key;
    const auto known = table.find(path);
    std::string why;
    if (value.is_null() || (value.is_string() && value.get<std::string>().empty()))
      why = "empty";
    else if (value == "auto" && path != "bf16")
      why = "\"auto\": the Trainer that starts DeepSpeed fills it in";
    else if (known != table.end())
      why = known->second(value, config);
    else if (value.is_object()) {
      walk(value, path, table, config, why_unknown);
      continue;
    } else
      why = why_unknown(path);
    if (!why.empty()) config.dropped.emplace_back(path, why);
  }
}

std::string why_absent(const std::string& path) {
  const std::string name = path.substr(path.rfind('.') == path.npos ? 0 : path.rfind('.') + 1);
  const std::string hint = foreign_key_hint("", name);
  return hint.empty() ? "nothing here corresponds to it" : hint;
}

const KeyTable& deepspeed_table() {
  const std::string buffers = "a size of DeepSpeed's buffers; here buffers follow from the units",
                    scale = "the loss scale of fp16 begins and moves by itself here";
  static const KeyTable table{
      {"train_batch_size", number("training.global_batch_size")},
      {"train_micro_batch_size_per_gpu", number("training.local_batch_size")},
      {"gradient_accumulation_steps", absent("it follows from global_batch_size, local_batch_size and the ranks")},
      {"gradient_clipping", number("training.max_norm")},
      {"steps_per_print", number("metrics.log_interval")},
      {"bf16.enabled", precision("bf16")},
      {"fp16.enabled", precision("fp16")},
      {"fp16.loss_scale", absent(scale)},
      {"fp16.loss_scale_window", absent(scale)},
      {"fp16.initial_scale_power", absent(scale)},
      {"fp16.hysteresis", absent(scale)},
      {"fp16.min_loss_scale", absent(scale)},
      {"zero_optimization.stage", number("zero.stage")},
      {"zero_optimization.offload_optimizer.device", word("offload.optimizer", places())},
      {"zero_optimization.offload_param.device", word("offload.parameters", places())},
      {"zero_optimization.zero_hpz_partition_size",
       absent("it keeps a second copy of the weights on each node; for hybrid sharding give --set zero.shard_degree")},
      {"zero_optimization.reduce_bucket_size", absent(buffers)},
      {"zero_optimization.allgather_bucket_size", absent(buffers)},
      {"zero_optimization.stage3_prefetch_bucket_size", absent(buffers)},
      {"zero_optimization.stage3_param_persistence_threshold", absent(buffers)},
      {"zero_optimization.stage3_max_live_parameters", absent(buffers)},
      {"zero_optimization.stage3_max_reuse_distance", absent(buffers)},
      {"zero_optimization.sub_group_size", absent(buffers)},
      {"zero_optimization.overlap_comm", absent("gathers and sums overlap by themselves on GPUs")},
      {"zero_optimization.contiguous_gradients", absent("gradients are always contiguous here")},
      {"zero_optimization.round_robin_gradients", absent("gradients are always divided evenly here")},
      {"zero_optimization.stage3_gather_16bit_weights_on_model_save",
       absent("the result is always whole and in 16 bits")},
      {"optimizer.type", word("optimizer.name", optimizers())},
      {"optimizer.params.lr", number("optimizer.lr")},
      {"optimizer.params.eps", number("optimizer.eps")},
      {"optimizer.params.weight_decay", number("optimizer.weight_decay")},
      {"optimizer.params.betas",
       [](const Json& value, ForeignConfig& config) -> std::string {
         if (!value.is_array() || value.size() != 2) return "no two numbers";
         set(config, "optimizer.betas", value.dump());
         return "";
       }},
      {"scheduler.type", word("lr_scheduler.type",
                              {{"warmuplr", "constant"}, {"warmupdecaylr", "linear"}, {"warmupcosinelr", "cosine"}})},
      {"scheduler.params.warmup_num_steps", number("lr_scheduler.warmup_steps")},
      {"scheduler.params.total_num_steps", number("training.steps")},
      {"scheduler.params.warmup_max_lr", absent("the rate is [optimizer] lr")},
      {"scheduler.params.warmup_min_lr", absent("a warm-up begins at lr / warmup_steps")},
      {"activation_checkpointing.partition_activations", flag("activation_checkpoint.mode", "\"full\"")},
      {"tensorboard.enabled", flag("metrics.tensorboard", "true")},
      {"wall_clock_breakdown", absent("metrics.jsonl has each step's times")},
  };
  return table;
}

std::string datasets_into(const Json& value, ForeignConfig& config) {
  std::string more;
  if (!value.is_array()) return "no list";
  for (const Json& one : value)
    for (const auto& [key, part] : one.items()) {
      if (key == "path" && part.is_string())
        config.data += (config.data.empty() ? "" : ",") + part.get<std::string>();
      else
        more += (more.empty() ? "" : ", ") + key;
    }
  return more.empty() ? "" : "paths are taken; " + more + ": files hold conversations or texts (docs/data.md)";
}

std::string adapter_into(const Json& value, ForeignConfig& config) {
  const std::string name = words_of(value);
  if (name != "lora" && name != "qlora") return "only lora and qlora are known here";
  config.lora = true;
  if (name == "qlora") set(config, "lora.quantization", "\"nf4\"");
  return "";
}

std::string modules_into(const Json& value, ForeignConfig& config) {
  if (!value.is_array()) return "no list";
  set(config, "lora.target_modules", value.dump());
  return "";
}

const KeyTable& axolotl_table() {
  const std::string trainer = "an implementation choice of axolotl's trainer; here kernels choose themselves";
  static const KeyTable table{
      {"base_model", text_into(&ForeignConfig::model)},
      {"output_dir", text_into(&ForeignConfig::output_dir)},
      {"datasets", datasets_into},
      {"adapter", adapter_into},
      {"sequence_len", number("training.seq_len")},
      {"micro_batch_size", number("training.local_batch_size")},
      {"gradient_accumulation_steps",
       absent("give --global-batch: micro_batch_size x gradient_accumulation_steps x ranks")},
      {"num_epochs",
       [](const Json& value, ForeignConfig& config) -> std::string {
         if (!value.is_number()) return "no number";
         set(config, "training.epochs", text(value.get<double>()));
         return "";
       }},
      {"max_steps",
       [](const Json& value, ForeignConfig& config) -> std::string {
         if (value.is_number() && value < 0) return "unset there";
         return number("training.steps")(value, config);
       }},
      {"learning_rate",
       [](const Json& value, ForeignConfig& config) -> std::string {
         set(config, "optimizer.lr", words_of(value));
         return "";
       }},
      {"optimizer", word("optimizer.name", optimizers())},
      {"lr_scheduler", word("lr_scheduler.type", {{"cosine", "cosine"},
                                                  {"linear", "linear"},
                                                  {"constant", "constant"},
                                                  {"constant_with_warmup", "constant"}})},
      {"warmup_steps", number("lr_scheduler.warmup_steps")},
      {"warmup_ratio", absent("give --set lr_scheduler.warmup_steps, which is ratio x steps")},
      {"cosine_min_lr_ratio", number("lr_scheduler.min_lr_ratio")},
      {"weight_decay", number("optimizer.weight_decay")},
      {"adam_beta1", betas_part(0)},
      {"adam_beta2", betas_part(1)},
      {"adam_epsilon", number("optimizer.eps")},
      {"max_grad_norm", number("training.max_norm")},
      {"bf16", precision("bf16")},
      {"fp16", precision("fp16")},
      {"tf32", absent("fp32 products may use it on GPUs by themselves")},
      {"lora_r", number("lora.r")},
      {"lora_alpha", number("lora.lora_alpha")},
      {"lora_dropout", number("lora.lora_dropout")},
      {"lora_target_linear", flag("lora.target_modules", "\"all-linear\"")},
      {"lora_target_modules", modules_into},
      {"lora_modules_to_save",
       [](const Json& value, ForeignConfig& config) -> std::string {
         set(config, "lora.modules_to_save", value.dump());
         return "";
       }},
      {"peft_use_dora", flag("lora.use_dora", "true")},
      {"peft_use_rslora", flag("lora.use_rslora", "true")},
      {"load_in_4bit", flag("lora.quantization", "\"nf4\"")},
      {"load_in_8bit", flag("lora.quantization", "\"int8\"")},
      {"gradient_checkpointing", flag("activation_checkpoint.mode", "\"full\"")},
      {"sample_packing", flag("data.packing", "true")},
      {"train_on_inputs", flag("data.train_on", "\"all\"", "\"assistant\"")},
      {"seed", number("training.seed")},
      {"save_steps", number("checkpoint.interval")},
      {"save_total_limit", number("checkpoint.keep")},
      {"early_stopping_patience",
       absent("give --set training.patience with data.validation_fraction or data.validation")},
      {"load_best_model_at_end",
       absent("give --set checkpoint.keep_best=true with data.validation_fraction or data.validation")},
      {"logging_steps", number("metrics.log_interval")},
      {"eval_steps", absent("give --set training.validation_interval and data.validation")},
      {"flash_attention", absent(trainer)},
      {"xformers_attention", absent(trainer)},
      {"pad_to_sequence_len", absent("rows are always as long as seq_len in memory")},
      {"model_type", absent("config.json names the family")},
      {"tokenizer_type", absent("the tokenizer's files name its type")},
      {"dataset_prepared_path", absent("tokens are kept in token_cache of the output directory")},
      {"deepspeed", absent("a file of its own: the planner chooses the stage here")},
  };
  return table;
}

/// A later setting of a key counts, as on the command line; "load_in_4bit" and "qlora" say the same.
void keep_last(ForeignConfig& config) {
  std::vector<std::string> kept;
  for (auto at = config.overrides.rbegin(); at != config.overrides.rend(); ++at) {
    const std::string key = at->substr(0, at->find('=') + 1);
    if (std::none_of(kept.begin(), kept.end(), [&](const std::string& set) { return set.starts_with(key); }))
      kept.push_back(*at);
  }
  config.overrides.assign(kept.rbegin(), kept.rend());
}

}  // namespace

ForeignConfig translate_deepspeed(const std::string& words, const std::string& source) {
  const Json tree = parse_ordered_json(words, source);
  if (!tree.is_object()) throw InputError(source + ": is no JSON object, as DeepSpeed's configurations are");
  ForeignConfig config;
  config.tool = "DeepSpeed";
  walk(tree, "", deepspeed_table(), config, [&](const std::string& path) -> std::string {
    if (path.ends_with("nvme_path")) return "give --set offload.nvme_dir, a folder on this machine";
    if (path.find("offload_") != path.npos) return "a setting of DeepSpeed's own disk and host buffers";
    return why_absent(path);
  });
  keep_last(config);
  return config;
}

ForeignConfig translate_axolotl(const std::string& words, const std::string& source) {
  const Json tree = parse_yaml(words, source);
  if (!tree.is_object() || !(tree.contains("base_model") || tree.contains("datasets")))
    throw InputError(source + ": has neither base_model nor datasets, so it is no configuration of axolotl");
  ForeignConfig config;
  config.tool = "axolotl";
  walk(tree, "", axolotl_table(), config, why_absent);
  if (!config.lora) {  // keys of [lora] alone would begin adapters
    for (const std::string& set : config.overrides)
      if (set.starts_with("lora.")) config.dropped.emplace_back(set.substr(0, set.find('=')), "there is no adapter");
    std::erase_if(config.overrides, [](const std::string& set) { return set.starts_with("lora."); });
  }
  keep_last(config);
  return config;
}

ForeignConfig read_foreign_config(const std::string& path) {
  if (!is_file(path)) throw InputError("--from " + path + ": is no file here");
  std::ifstream file(path, std::ios::binary);
  std::string words(most_bytes + 1, '\0');
  file.read(words.data(), std::streamsize(words.size()));
  if (file.bad() || !file.is_open()) throw InputError("--from " + path + ": cannot be read");
  words.resize(std::size_t(file.gcount()));
  if (words.size() > most_bytes)
    throw InputError("--from " + path + ": has more than 1 MiB, so it is no configuration");
  if (words.starts_with("\xEF\xBB\xBF")) words.erase(0, 3);  // a byte order mark
  const std::size_t first = words.find_first_not_of(" \t\r\n");
  return first != words.npos && words[first] == '{' ? translate_deepspeed(words, path) : translate_axolotl(words, path);
}

}  // namespace zero
