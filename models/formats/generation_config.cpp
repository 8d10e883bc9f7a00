#include "models/formats/generation_config.h"

#include <algorithm>

#include "base/json_text.h"

namespace zero {
namespace {

using nlohmann::json;

json base_config(const std::string& base) {
  return base.empty() ? json::object() : read_json_object(base + "/generation_config.json", {.bytes = 1 << 20});
}

std::vector<std::int64_t> ids_of(const json& value, const std::string& path) {
  constexpr const char* key = "eos_token_id";
  std::vector<std::int64_t> ids;
  if (value.is_null()) return ids;
  for (const json& id : value.is_array() ? value : json::array({value}))
    ids.push_back(json_index(id, key, INT32_MAX, path));
  return ids;
}

}  // namespace

std::vector<std::int64_t> stop_ids_of(const ModelConfig& config, const std::string& base,
                                      const TokenizerSource& tokenizer) {
  const json file = base_config(base);
  std::vector<std::int64_t> ids = file.contains("eos_token_id")
                                      ? ids_of(file["eos_token_id"], base + "/generation_config.json")
                                      : config.eos_token_ids;
  const auto end = end_of_turn_of(tokenizer);
  if (end && *end < config.vocab_size && std::find(ids.begin(), ids.end(), *end) == ids.end()) ids.push_back(*end);
  return ids;
}

void write_generation_config(const std::string& folder, const ModelConfig& config, const std::string& base,
                             const std::vector<std::int64_t>& stop_ids) {
  const std::string path = base + "/generation_config.json", written = folder + "/generation_config.json";
  json file = base_config(base);
  if (!file.empty() && ids_of(file.value("eos_token_id", json()), path) == stop_ids)
    return write_text_file(written, read_text_file(path));
  if (file.empty()) {
    file["_from_model_config"] = true;
    if (config.bos_token_id) file["bos_token_id"] = *config.bos_token_id;
  }
  if (!stop_ids.empty()) file["eos_token_id"] = stop_ids.size() == 1 ? json(stop_ids.front()) : json(stop_ids);
  write_text_file(written, file.dump(2) + "\n");
}

}  // namespace zero
