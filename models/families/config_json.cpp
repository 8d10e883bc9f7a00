#include "models/families/config_json.h"

#include "base/error.h"
#include "base/json_text.h"
#include "base/log.h"
#include "models/families/config_fields.h"
#include "models/families/families.h"
#include "models/families/llama_fields.h"

namespace zero {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

const Family& family_of_file(const json& file, const std::string& path) {
  if (!file.contains("model_type") || !file["model_type"].is_string())
    throw InputError(text(path, ": model_type ", file.contains("model_type") ? "must be a string" : "is missing"));
  const std::string type = file["model_type"];
  if (type == "gemma3")
    throw InputError(text(path, ": model_type \"gemma3\" has images too; only its text part is supported, as a folder ",
                          "of its own whose model_type is \"gemma3_text\""));
  try {
    return family_of(type);
  } catch (const InputError& error) {
    throw InputError(text(path, ": ", error.what()));
  }
}

/// Does not check that the values are consistent.
ModelConfig read(ConfigFields& fields, const Family& family) {
  ModelConfig config;
  config.num_key_value_heads = config.head_dim = 0;
  config.model_type = family.model_type;
  family.read(fields, config);
  fields.refuse_the_rest();
  // [model] can also change a Llama's sizes, so the current values are written and not the fields that were read.
  if (family.model_type != llama_family().model_type) config.fields = fields.used();
  return config;
}

}  // namespace

ModelConfig parse_model_config(const std::string& content, const std::string& path) {
  const json file = parse_json(content, path, {.bytes = 1 << 20, .depth = 32});
  if (!file.is_object()) throw InputError(path + ": must be a JSON object");
  ConfigFields fields(file, path);
  ModelConfig config = read(fields, family_of_file(file, path));
  validate(config, path);
  return config;
}

std::string format_model_config(const ModelConfig& config, const std::string& torch_dtype) {
  ordered_json file;
  file["architectures"] = {family_of(config.model_type).architecture};
  file["model_type"] = config.model_type;
  if (config.fields.empty())
    add_llama_fields(file, config);
  else
    file.update(ordered_json::parse(config.fields));
  file["bos_token_id"] = nullptr;
  if (config.bos_token_id) file["bos_token_id"] = *config.bos_token_id;
  file["eos_token_id"] = nullptr;
  if (config.eos_token_ids.size() == 1) file["eos_token_id"] = config.eos_token_ids.front();
  if (config.eos_token_ids.size() > 1) file["eos_token_id"] = config.eos_token_ids;
  file["torch_dtype"] = torch_dtype;
  file["use_cache"] = true;
  return file.dump(2) + "\n";
}

void set_model_field(ModelConfig& config, const std::string& name, const std::string& json_value) {
  const std::string where = "model." + name;
  json file = json::parse(format_model_config(config, "float32"));
  if (!config.head_dim_given) file.erase("head_dim");
  file[name] = parse_json(json_value, where, {.bytes = 1 << 16, .depth = 8});
  ConfigFields fields(file, where);
  ModelConfig changed = read(fields, family_of(config.model_type));
  if (!fields.was_asked_for(name)) throw InputError(text(where, " is no field of the decoder's config.json"));
  config = std::move(changed);
}

}  // namespace zero
