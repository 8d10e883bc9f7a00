#include "models/lora/peft_directory.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/files/own_files.h"
#include "base/json_text.h"
#include "base/log.h"

namespace zero {

namespace {

using nlohmann::json;

bool is_empty(const json& value) {
  return value.is_null() || value == false || (value.is_string() && value.get_ref<const std::string&>().empty()) ||
         ((value.is_object() || value.is_array()) && value.empty());
}

// Every key of PEFT's LoraConfig is in one of three lists (peft 0.21). Keys that are read:
constexpr const char* read_keys[] = {
    "peft_type",       "r",          "lora_alpha",         "lora_dropout",   "target_modules",
    "modules_to_save", "use_rslora", "use_dora",           "fan_in_fan_out", "init_lora_weights",
    "task_type",       "bias",       "ensure_weight_tying"};

// Keys that do not affect a trained adapter, or only together with a key that is rejected:
constexpr const char* free_keys[] = {"auto_mapping",  "peft_version",   "base_model_name_or_path",
                                     "revision",      "inference_mode", "megatron_config",
                                     "megatron_core", "loftq_config",   "eva_config",
                                     "corda_config",  "lora_ga_config", "qalora_group_size",
                                     "runtime_config"};

// Keys that change the arithmetic, which is not supported: these and unlisted keys must be "off".
constexpr const char* undone_keys[] = {"rank_pattern",   "alpha_pattern",     "layers_to_transform",
                                       "layers_pattern", "exclude_modules",   "layer_replication",
                                       "lora_bias",      "target_parameters", "trainable_token_indices",
                                       "use_qalora",     "use_bdlora",        "alora_invocation_tokens",
                                       "arrow_config",   "velora_config",     "monteclora_config",
                                       "kasa_config"};

template <std::size_t n>
bool is_among(const std::string& key, const char* const (&keys)[n]) {
  return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
}

void check_keys(const json& config, const std::string& path) {
  for (const auto& [key, value] : config.items()) {
    if (is_among(key, read_keys) || is_among(key, free_keys) || is_empty(value)) continue;
    const bool known = is_among(key, undone_keys);
    throw InputError(
        text(path, ": \"", key, "\" = ", value.dump().substr(0, 100),
             known ? " is not supported" : " is a key that is not known here, and may change what the adapter computes",
             ": only an adapter without it can be read",
             known ? "" : "; remove the key if it says nothing about the weights"));
  }
  if (const std::string bias = json_value<std::string>(config, "bias", "none", path); bias != "none")
    throw InputError(text(path, ": \"bias\" = \"", bias, "\" is not supported: only \"none\" is"));
  if (const std::string task = json_value<std::string>(config, "task_type", "CAUSAL_LM", path); task != "CAUSAL_LM")
    throw InputError(text(path, ": \"task_type\" = \"", task, "\" is not supported: only \"CAUSAL_LM\" is"));
}

/// An initialization that changes the base's weights: the adapter B A alone does not fit the stored base. PEFT repeats
/// it when it loads the adapter (pissa, olora, loftq), or cannot (corda, lora_ga).
void check_start(const json& config, const std::string& path) {
  const json init = config.value("init_lora_weights", json());
  if (init.is_null() || init.is_boolean()) return;
  if (!init.is_string()) refuse_json(path, "init_lora_weights", "true, false or a name", init);
  std::string name = init.get<std::string>();
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const char* harmless : {"gaussian", "eva", "orthogonal", "mica"})
    if (name == harmless) return;
  const bool known =
      name.starts_with("pissa") || name.starts_with("corda") || name == "olora" || name == "loftq" || name == "lora_ga";
  const char* convert =
      "let PEFT write it as a plain adapter: save_pretrained(folder, path_initial_model_for_weight_conversion=\"folder of the adapter as it was before training\")";
  throw InputError(text(
      path, ": \"init_lora_weights\" = ", init.dump(),
      known ? ": the start changed the base's weights too, so the adapter does not fit the base as it is stored; "
            : " is not known here, and may stand for a start that changes the base's weights; ",
      name == "loftq" ? "" : text(convert, ", or "), "merge it in PEFT (merge_and_unload) and take the merged model"));
}

LoraOptions options_of(const json& config, const std::string& path) {
  if (config.value("peft_type", json()) != "LORA") throw InputError(path + ": \"peft_type\" must be \"LORA\"");
  check_keys(config, path);
  check_start(config, path);
  LoraOptions options;
  options.r = json_value<std::int64_t>(config, "r", 8, path);
  options.alpha = json_value<double>(config, "lora_alpha", 8, path);
  options.dropout = json_value<double>(config, "lora_dropout", 0, path);
  options.use_rslora = json_value<bool>(config, "use_rslora", false, path);
  options.use_dora = json_value<bool>(config, "use_dora", false, path);
  options.fan_in_fan_out = json_value<bool>(config, "fan_in_fan_out", false, path);
  options.modules_to_save = json_value<std::vector<std::string>>(config, "modules_to_save", {}, path);
  options.ensure_weight_tying = json_value<bool>(config, "ensure_weight_tying", false, path);
  const json targets = config.value("target_modules", json());
  if (targets == "all-linear") {
    options.target_modules = {"all-linear"};
  } else if (targets.is_array() && !targets.empty()) {
    options.target_modules = json_value<std::vector<std::string>>(config, "target_modules", {}, path);
  } else {
    throw InputError(text(path, ": \"target_modules\" = ", targets.dump(),
                          ": must be a list of module names or \"all-linear\"; a pattern is not supported"));
  }
  if (options.r < 1 || options.r > 65536)
    throw InputError(text(path, ": \"r\" = ", options.r, ": must be between 1 and 65536"));
  if (!(std::abs(options.alpha) <= 1e30))
    throw InputError(text(path, ": \"lora_alpha\" = ", options.alpha, ": must be at most 1e30"));
  if (options.dropout < 0 || options.dropout >= 1)
    throw InputError(text(path, ": \"lora_dropout\" = ", options.dropout, ": must be in [0, 1)"));
  if (options.use_dora && options.dropout > 0)
    throw InputError(path + ": \"use_dora\" with \"lora_dropout\" is not supported");
  return options;
}

}  // namespace

PeftDirectory::PeftDirectory(const std::string& folder) : folder_(folder) {
  const std::string config = folder + "/adapter_config.json";
  if (!is_folder(folder))
    throw InputError(folder +
                     ": there is no such directory: name one that PEFT or zero_train has written an adapter to");
  if (!is_there(config))
    throw InputError(
        folder + ": holds no adapter_config.json: name a directory that PEFT or zero_train has written an adapter to");
  require_own_files(folder);
  options_ = options_of(read_json_object(config, {.bytes = 1 << 20}), config);
  const std::string weights = folder + "/adapter_model.safetensors";
  if (!is_there(weights) && is_there(folder + "/adapter_model.bin"))
    throw InputError(folder +
                     ": holds adapter_model.bin, which is not read: load the adapter in PEFT and save it again by "
                     "save_pretrained(folder, safe_serialization=True)");
  weights_ = std::make_shared<SafetensorsFile>(weights);
}

void write_adapter_config(const std::string& folder, const LoraOptions& options, const std::string& base) {
  json config = {{"alpha_pattern", json::object()}, {"auto_mapping", nullptr},   {"bias", "none"},
                 {"inference_mode", true},          {"init_lora_weights", true}, {"layers_pattern", nullptr},
                 {"layers_to_transform", nullptr},  {"lora_bias", false},        {"peft_type", "LORA"},
                 {"rank_pattern", json::object()},  {"revision", nullptr},       {"task_type", "CAUSAL_LM"}};
  config["base_model_name_or_path"] = base;
  config["r"] = options.r;
  const bool whole = std::abs(options.alpha) < 1e15 && std::trunc(options.alpha) == options.alpha;
  config["lora_alpha"] = whole ? json(static_cast<std::int64_t>(options.alpha)) : json(options.alpha);
  config["lora_dropout"] = options.dropout;
  config["target_modules"] = expand_targets(options.target_modules);
  config["modules_to_save"] = options.modules_to_save.empty() ? json() : json(options.modules_to_save);
  if (options.ensure_weight_tying) config["ensure_weight_tying"] = true;  // releases without this key refuse it
  config["use_rslora"] = options.use_rslora;
  config["use_dora"] = options.use_dora;
  config["fan_in_fan_out"] = options.fan_in_fan_out;
  write_text_file(folder + "/adapter_config.json", config.dump(2) + "\n");
}

}  // namespace zero
