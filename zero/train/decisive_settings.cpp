#include "zero/train/decisive_settings.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "comm/error.h"
#include "comm/log.h"
#include "models/file.h"
#include "zero/data/fingerprint.h"
#include "zero/train/config_keys.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t piece = std::int64_t{1} << 20, pieces = 64;

// Sections and keys that change how a result is reached, or how long a run is, and not what a step does.
const std::set<std::string> free_sections{"job", "zero", "comm", "activation_checkpoint", "offload", "checkpoint", "metrics"};
const std::set<std::string> free_keys{"training.steps", "training.epochs", "training.local_batch_size", "training.precision", "training.device",
                                      "training.validation_interval", "data.validation"};
// Told by their content, or in another way.
const std::set<std::string> marked_keys{"model.preset", "model.path", "data.train", "data.tokenizer", "training.global_batch_size", "lora.adapter"};

std::string text_of(const ConfigKey& key, Config& config) {
  const std::optional<Value> value = read_field(key.field(config));
  return value ? toml_text(*value) : "none";
}

void add_model(Settings& settings, const ModelConfig& model) {
  const auto fields = nlohmann::ordered_json::parse(format_model_config(model, "float32"));
  for (const auto& [name, value] : fields.items()) settings.emplace_back("model." + name, value.dump());
}

std::string marks_of(const std::vector<std::string>& paths) {
  std::string marks;
  for (const std::string& path : paths) marks += (marks.empty() ? "" : "; ") + file_mark(path);
  return marks;
}

// Where the tokenizer of the run's texts lies; empty: there is none.
std::string tokenizer_file(const Config& config) {
  std::string path = config.data.tokenizer.empty() ? config.model.path.value_or("") : config.data.tokenizer;
  if (!path.empty() && fs::is_directory(path)) path += "/tokenizer.model";
  return fs::exists(path) ? path : "";
}

}  // namespace

std::string file_mark(const std::string& path) {
  if (fs::is_directory(path)) {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(path))
      if (entry.path().extension() == ".safetensors") files.push_back(entry.path().string());
    std::sort(files.begin(), files.end());
    return marks_of(files);
  }
  const File file = File::open(path);
  std::string sample;
  if (file.size() <= piece * pieces) {
    sample.resize(static_cast<std::size_t>(file.size()));
    file.read_at(sample.data(), file.size(), 0);
  } else {
    sample.resize(static_cast<std::size_t>(piece * pieces));
    for (std::int64_t i = 0; i < pieces; ++i) file.read_at(sample.data() + i * piece, piece, (file.size() - piece) / (pieces - 1) * i);
  }
  return text(file.size(), " bytes, ", hex(fingerprint_of(sample), 12));
}

Settings decisive_settings(const Config& config, const BatchArithmetic& batch, const ModelConfig& model) {
  Settings settings;
  add_model(settings, model);
  settings.emplace_back("data.train", marks_of(config.data.train));
  if (const std::string tokenizer = tokenizer_file(config); !tokenizer.empty()) settings.emplace_back("data.tokenizer", file_mark(tokenizer));
  settings.emplace_back("training.global_batch_size", std::to_string(batch.global_batch_size));
  if (config.lora && config.model.path) settings.emplace_back("model.path", file_mark(*config.model.path));
  Config copy = config;
  for (const ConfigKey& key : config_keys()) {
    if (free_sections.contains(key.section) || free_keys.contains(key.full_name()) || marked_keys.contains(key.full_name())) continue;
    if (key.section == "lora" && !config.lora) continue;
    settings.emplace_back(key.full_name(), text_of(key, copy));
  }
  return settings;
}

void require_same_settings(const Config& config, const Settings& now, const Settings& then, const std::vector<std::string>& accepted, const std::string& checkpoint) {
  const std::map<std::string, std::string> before(then.begin(), then.end()), after(now.begin(), now.end());
  std::set<std::string> keys;
  for (const auto& [key, value] : before) keys.insert(key);
  for (const auto& [key, value] : after) keys.insert(key);
  const auto value_in = [](const std::map<std::string, std::string>& settings, const std::string& key) {
    const auto found = settings.find(key);
    return found == settings.end() ? std::string("none") : found->second;
  };
  for (const std::string& key : keys) {
    const std::string was = value_in(before, key), is = value_in(after, key);
    if (was == is || std::find(accepted.begin(), accepted.end(), key) != accepted.end()) continue;
    throw InputError(text(config.where(key), ": is ", is, " now, and ", was, " in ", checkpoint, ": give it the value that it had, or begin another run",
                          key.starts_with("model.") ? "" : text(", or pass --accept-change ", key, " to go on with the new one")));
  }
}

std::string other_changes(const Config& now, const Config& then) {
  std::string changes;
  Config after = now, before = then;
  for (const ConfigKey& key : config_keys()) {
    if (key.section == "job" || (!free_sections.contains(key.section) && !free_keys.contains(key.full_name()))) continue;
    const std::string was = text_of(key, before), is = text_of(key, after);
    if (was != is) changes += text(changes.empty() ? "" : ", ", key.full_name(), " ", was, " -> ", is);
  }
  return changes;
}

}  // namespace zero
