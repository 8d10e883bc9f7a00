#include "models/peft_directory.h"

#include <filesystem>

#include "comm/error.h"
#include "comm/log.h"
#include "models/json_text.h"

namespace zero {

namespace {

using nlohmann::json;

bool is_empty(const json& value) {
  return value.is_null() || value == false || value == "none" || ((value.is_object() || value.is_array()) && value.empty());
}

/// Keys that change the arithmetic and are not done here: anything but their "off" is refused.
constexpr const char* undone[] = {"bias", "fan_in_fan_out", "rank_pattern", "alpha_pattern", "layers_to_transform", "layers_pattern",
                                  "exclude_modules", "layer_replication", "lora_bias", "target_parameters", "trainable_token_indices",
                                  "use_qalora", "use_bdlora", "alora_invocation_tokens", "arrow_config"};

template <class T>
T value_of(const json& config, const char* key, T otherwise, const std::string& path) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return otherwise;
  try {
    return found->get<T>();
  } catch (const json::exception&) {
    throw InputError(text(path, ": \"", key, "\" has the wrong type: ", found->dump()));
  }
}

LoraOptions options_of(const json& config, const std::string& path) {
  if (!config.is_object() || config.value("peft_type", json()) != "LORA") throw InputError(path + ": \"peft_type\" must be \"LORA\"");
  for (const char* key : undone)
    if (config.contains(key) && !is_empty(config[key])) throw InputError(text(path, ": \"", key, "\" = ", config[key].dump(), " is not supported"));
  LoraOptions options;
  options.r = value_of<std::int64_t>(config, "r", 8, path);
  options.alpha = value_of<double>(config, "lora_alpha", 8, path);
  options.dropout = value_of<double>(config, "lora_dropout", 0, path);
  options.use_rslora = value_of<bool>(config, "use_rslora", false, path);
  options.use_dora = value_of<bool>(config, "use_dora", false, path);
  options.modules_to_save = value_of<std::vector<std::string>>(config, "modules_to_save", {}, path);
  const json targets = config.value("target_modules", json());
  if (targets == "all-linear") {
    options.target_modules = {"all-linear"};
  } else if (targets.is_array() && !targets.empty()) {
    options.target_modules = value_of<std::vector<std::string>>(config, "target_modules", {}, path);
  } else {
    throw InputError(text(path, ": \"target_modules\" = ", targets.dump(), ": must be a list of module names or \"all-linear\"; a pattern is not supported"));
  }
  if (options.r < 1 || options.r > 65536) throw InputError(text(path, ": \"r\" = ", options.r, ": must be between 1 and 65536"));
  if (options.dropout < 0 || options.dropout >= 1) throw InputError(text(path, ": \"lora_dropout\" = ", options.dropout, ": must be in [0, 1)"));
  if (options.use_dora && options.dropout > 0) throw InputError(path + ": \"use_dora\" with \"lora_dropout\" is not supported");
  return options;
}

}  // namespace

PeftDirectory::PeftDirectory(const std::string& folder) : folder_(folder) {
  const std::string config = folder + "/adapter_config.json";
  if (!std::filesystem::exists(config))
    throw InputError(folder + ": holds no adapter_config.json: name a directory that PEFT or zero_train has written an adapter to");
  options_ = options_of(parse_json(read_text_file(config, 1 << 20), config), config);
  weights_ = std::make_shared<SafetensorsFile>(folder + "/adapter_model.safetensors");
}

void write_adapter_config(const std::string& folder, const LoraOptions& options, const std::string& base) {
  json config = {{"alpha_pattern", json::object()}, {"auto_mapping", nullptr}, {"bias", "none"}, {"fan_in_fan_out", false},
                 {"inference_mode", true}, {"init_lora_weights", true}, {"layers_pattern", nullptr}, {"layers_to_transform", nullptr},
                 {"lora_bias", false}, {"peft_type", "LORA"}, {"rank_pattern", json::object()}, {"revision", nullptr}, {"task_type", "CAUSAL_LM"}};
  config["base_model_name_or_path"] = base;
  config["r"] = options.r;
  const auto whole = static_cast<std::int64_t>(options.alpha);
  config["lora_alpha"] = double(whole) == options.alpha ? json(whole) : json(options.alpha);
  config["lora_dropout"] = options.dropout;
  config["target_modules"] = expand_targets(options.target_modules);
  config["modules_to_save"] = options.modules_to_save.empty() ? json() : json(options.modules_to_save);
  config["use_rslora"] = options.use_rslora;
  config["use_dora"] = options.use_dora;
  write_text_file(folder + "/adapter_config.json", config.dump(2) + "\n");
}

}  // namespace zero
