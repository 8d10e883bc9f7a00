#include "zero/train/resume_settings.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/byte_count.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/files/lookup.h"
#include "base/fingerprint.h"
#include "base/log.h"
#include "models/families/config_json.h"
#include "models/families/families.h"
#include "models/formats/tokenizer_files.h"
#include "models/text/chat_template.h"
#include "models/text/tokenizer.h"
#include "zero/config/config_keys.h"
#include "zero/config/data_files.h"
#include "zero/config/optimizer_settings.h"
#include "zero/config/run_model.h"
#include "zero/config/setup.h"
#include "zero/train/setting_keys.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t large = std::int64_t{1} << 30;  // takes seconds to read
// Compared by content, or in another way.
const std::set<std::string> marked_keys{"model.preset",
                                        "model.path",
                                        "data.train",
                                        "data.tokenizer",
                                        "data.chat_template",
                                        "training.global_batch_size",
                                        "lora.adapter",
                                        "model.embedding_dropout",
                                        "model.attention_dropout",
                                        "model.residual_dropout"};

void add_model(Settings& settings, const ModelConfig& model) {
  const auto fields = nlohmann::ordered_json::parse(format_model_config(model, "float32"));
  for (const auto& [name, value] : fields.items())
    if (!is_of_dropout("model." + name)) settings.emplace_back("model." + name, value.dump());
  const DropoutShares& dropout = model.trained_dropout();
  settings.emplace_back("model.embedding_dropout", toml_text(dropout.embedding));
  settings.emplace_back("model.attention_dropout", toml_text(dropout.attention));
  settings.emplace_back("model.residual_dropout", toml_text(dropout.residual));
}

std::string marks_of(const std::vector<std::string>& paths, const CoreSet& cores) {
  std::string marks;
  for (const std::string& path : paths) marks += (marks.empty() ? "" : "; ") + file_mark(path, cores);
  return marks;
}

std::string mark_of(std::string_view content) { return hex(fingerprint_of(content), 12); }

bool has_texts(const Config& config) {
  return std::any_of(config.data.train.begin(), config.data.train.end(),
                     [](const std::string& path) { return !path.ends_with(".bin"); });
}

/// Returns the marks of pieces, merges and the tokenizer's other settings. Empty if the run has no tokenizer, or a
/// tokenizer.json that is not needed.
std::string tokenizer_mark(const TokenizerSource& source, bool needed) {
  if (!needed && Tokenizer::is_json(source.tokenizer)) return "";
  const std::string folder = tokenizer_home(source.tokenizer);
  if (source.tokenizer.empty() || !Tokenizer::lies_at(source.tokenizer)) return "";
  const std::string file = is_folder(source.tokenizer) ? Tokenizer::sentencepiece_in(folder) : source.tokenizer;
  std::string mark = is_there(file) ? file_mark(file) : "no tokenizer.model";
  if (is_there(folder + "/tokenizer.json")) mark += "; tokenizer.json " + file_mark(folder + "/tokenizer.json");
  return mark + "; added tokens and rules " + mark_of(encoding_rules_of(source));
}

/// Returns the template's name if it is known, and its text.
std::string template_mark(const TokenizerSource& source) {
  const auto jinja = chat_template_of(source);
  if (!jinja) return "none";
  std::string name;
  try {
    name = ChatTemplate::load(source.settings, source.chat_template).name() + ", ";
  } catch (const UnreadableError&) {
    throw;
  } catch (const InputError&) {  // reported when a conversation needs it
  }
  const auto for_tools = tools_template_of(source);
  return text(name, jinja->size(), " bytes, ", mark_of(*jinja), for_tools ? "; with tools " + mark_of(*for_tools) : "");
}

/// Uses the settings of the adapter with which training begins, instead of those of [lora].
void take_adapter(LoraSection& lora, const LoraOptions& stored) {
  lora.r = stored.r;
  lora.lora_alpha = stored.alpha;
  lora.lora_dropout = stored.dropout;
  lora.target_modules = expand_targets(stored.target_modules);
  lora.modules_to_save = stored.modules_to_save;
  lora.use_rslora = stored.use_rslora;
  lora.use_dora = stored.use_dora;
}

}  // namespace

std::string file_mark(const std::string& path, const CoreSet& cores) {
  if (is_folder(path)) {
    std::vector<std::string> files;
    for (const std::string& name : names_in(path))
      if (name.ends_with(".safetensors")) files.push_back((fs::path(path) / name).string());
    return marks_of(files, cores);
  }
  const std::int64_t bytes = File::open(path).size();
  if (bytes >= large) log_info("reading ", path, ", ", bytes_text(bytes), ", by whose content a resumed run knows it");
  return text(bytes, " bytes, ", mark_scheme, hex(fingerprint_of_file(path, cores), 12));
}

Settings resume_settings(const Config& config, const BatchArithmetic& batch, const ModelConfig& model,
                         const CoreSet& cores) {
  Settings settings;
  add_model(settings, model);
  const TokenizerSource tokenizer = tokenizer_source_of(config);
  settings.emplace_back("data.train", marks_of(config.data.train, cores));
  if (const std::string mark = tokenizer_mark(tokenizer, has_texts(config)); !mark.empty()) {
    settings.emplace_back("data.tokenizer", mark);
    if (any_holds_examples(config.data.train)) settings.emplace_back("data.chat_template", template_mark(tokenizer));
  }
  settings.emplace_back("training.global_batch_size", std::to_string(batch.global_batch_size));
  if (config.lora && config.model.path) settings.emplace_back("model.path", file_mark(*config.model.path, cores));
  Config copy = config;
  if (const auto start = start_of(config, make_model(model))) {
    take_adapter(*copy.lora, *lora_options_of(config));
    if (!start->beside().empty()) settings.emplace_back("lora.adapter", file_mark(start->file().path(), cores));
  }
  for (const ConfigKey& key : config_keys()) {
    if (is_free(key) || marked_keys.contains(key.full_name())) continue;
    if (!is_read(config, key)) continue;
    settings.emplace_back(key.full_name(), text_of(key, copy));
  }
  if (const std::string groups = groups_toml(config.optimizer); !groups.empty())
    settings.emplace_back("optimizer.group", groups);
  return settings;
}

std::string start_mark(const Config& config, const ModelConfig& model, const Settings& settings, const CoreSet& cores) {
  std::string marks;
  for (const auto& [key, value] : settings)
    if ((key.starts_with("model.") && !is_of_dropout(key)) || key == "lora.quantization")
      marks += text(key, " ", value, "\n");
  if (config.model.path && !config.lora) marks += file_mark(*config.model.path, cores);
  if (!config.model.path) marks += text("seed ", config.training.seed);
  if (const auto start = start_of(config, make_model(model))) marks += file_mark(start->file().path(), cores);
  return mark_of(marks);
}

}  // namespace zero
