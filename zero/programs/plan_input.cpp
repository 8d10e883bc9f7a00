#include "zero/programs/plan_input.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/log.h"
#include "models/model_config.h"
#include "models/text/tokenizer.h"
#include "zero/config/config_keys.h"
#include "zero/config/data_files.h"
#include "zero/config/nearest_key.h"
#include "zero/config/setup.h"
#include "zero/data/examples/example_use.h"
#include "zero/plan/plan_machine.h"
#include "zero/programs/usual_values.h"

namespace zero {
namespace {

constexpr std::int64_t planned_seq_len = 2048, planned_tokens = 131072;

UsualValues usual_values(const PlanInput& input) {
  const auto adapts = [](const std::string& setting) { return setting.starts_with("lora."); };
  const auto prefers = [](const std::string& setting) { return setting.starts_with("preference."); };
  ExampleUse use = is_file(input.data) ? use_of_examples(input.data) : ExampleUse::single;
  if (use == ExampleUse::single && std::ranges::any_of(input.overrides, prefers)) use = ExampleUse::pair;
  return {is_preset(input.model), std::ranges::any_of(input.overrides, adapts), use};
}

std::string config_text(const PlanInput& input, const std::string& data) {
  const std::filesystem::path model = input.model;
  std::string name = (model.extension() == ".gguf" ? model.stem() : model.filename()).string();
  if (name.empty() || name == "config.json") name = model.parent_path().filename().string();
  const UsualValues usual = usual_values(input);
  if (name.empty()) name = "model";
  return "[job]\noutput_dir = " + toml_text("outputs/" + name) + "\n[model]\n" +
         (is_preset(input.model) ? "preset" : "path") + " = " + toml_text(input.model) + "\n[data]\ntrain = [" +
         toml_text(data) + "]\n" + (input.tokenizer.empty() ? "" : "tokenizer = " + toml_text(input.tokenizer) + "\n") +
         "[training]\nseq_len = 1\n" + usual.length() + "[optimizer]\n" + usual.optimizer() + usual.preference();
}

/// Presets, and folders with a config.json alone, have none.
bool has_tokenizer(const std::string& model) {
  return !is_preset(model) && (model.ends_with(".gguf") || Tokenizer::lies_at(model));
}

/// The new configuration would refuse such data by the names of its own keys.
void require_tokenizer(const PlanInput& input) {
  if (!input.data.empty() && lacks_tokenizer(input.model, {input.data}, input.tokenizer, input.overrides))
    throw InputError("--data " + input.data + ": is text, and " + input.model +
                     " has no tokenizer: give --tokenizer, a tokenizer.json, a tokenizer.model or a folder with one");
}

Config config_of_model(const PlanInput& input, const MachineRequest& machine) {
  std::vector<std::string> overrides = input.overrides;
  const std::string made_for = "(a configuration for " + input.model + ")";
  const std::string data = !input.data.empty() ? input.data : is_preset(input.model) ? "tokens.bin" : "data.jsonl";
  require_tokenizer(input);
  Config config = parse_config(config_text(input, data), made_for, overrides);
  set_usual_warmup(config);
  enlarge_vocabulary(config);
  const ModelConfig model = model_config_of(config);
  check_context("--seq-len", input.seq_len, model);
  if (config.training.seq_len == 1)
    config.training.seq_len =
        input.seq_len > 0 ? input.seq_len : std::min(planned_seq_len, model.max_position_embeddings);
  if (!config.training.global_batch_size) {
    const std::int64_t ranks = ranks_of(machine);
    std::int64_t rows = std::max<std::int64_t>(planned_tokens / config.training.seq_len, 1);
    rows = std::max(ranks, (rows + ranks - 1) / ranks * ranks);
    config.training.global_batch_size = input.global_batch > 0 ? input.global_batch : rows;
    if (input.global_batch > 0)
      config.origin["training.global_batch_size"] = text("--global-batch ", input.global_batch);
  }
  return config;
}

}  // namespace

bool is_preset(const std::string& name) {
  const std::vector<std::string>& names = preset_names();
  return std::find(names.begin(), names.end(), name) != names.end() || (name.ends_with(".json") && is_file(name));
}

bool lacks_tokenizer(const std::string& model, const std::vector<std::string>& data, const std::string& tokenizer,
                     const std::vector<std::string>& overrides) {
  const bool has_texts = std::ranges::any_of(data, [](const std::string& file) { return data_kind(file) != "bin"; });
  const bool has_key =
      std::ranges::any_of(overrides, [](const std::string& setting) { return setting.starts_with("data.tokenizer="); });
  return has_texts && tokenizer.empty() && !has_key && !has_tokenizer(model);
}

void check_context(const std::string& option, std::int64_t seq_len, const ModelConfig& model) {
  if (seq_len > model.max_position_embeddings)
    throw InputError(
        text(option, " ", seq_len, ": the model's context is ", model.max_position_embeddings, " tokens; lower it"));
}

Config config_of(const PlanInput& input, const MachineRequest& machine) {
  if (input.model.empty())
    throw InputError("name a model or a configuration: a preset such as llama-110m, a model's directory, or run.toml");
  if (is_preset(input.model)) return config_of_model(input, machine);
  if (!is_there(input.model))
    throw InputError(input.model + ": is neither a path here nor a preset" + choice_among(input.model, preset_names()));
  if (is_folder(input.model) && !is_there(input.model + "/config.json"))
    throw InputError(
        input.model +
        ": is a folder with neither config.json (a model) nor config.toml (the output directory of a run); "
        "name one of these, a configuration (.toml) or a preset");
  if (is_folder(input.model) || input.model.ends_with(".json") || input.model.ends_with(".gguf"))
    return config_of_model(input, machine);
  for (const auto& [given, option] :
       {std::pair(!input.data.empty(), "--data"), std::pair(input.seq_len > 0, "--seq-len"),
        std::pair(!input.tokenizer.empty(), "--tokenizer"), std::pair(input.global_batch > 0, "--global-batch")})
    if (given)
      throw InputError(
          text(option, ": is for a model; ", input.model, " is a configuration, whose keys --set changes"));
  return load_config(input.model, input.overrides);
}

}  // namespace zero
