#include "zero/programs/new_run.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/log.h"
#include "models/model_config.h"
#include "models/text/tokenizer.h"
#include "zero/config/config_keys.h"
#include "zero/config/data_files.h"
#include "zero/config/model_paths.h"
#include "zero/config/nearest_key.h"
#include "zero/config/setup.h"
#include "zero/data/examples/example_use.h"
#include "zero/plan/node_sheets.h"
#include "zero/plan/plan_machine.h"
#include "zero/programs/plan_input.h"
#include "zero/programs/usual_values.h"

namespace zero {
namespace {

std::string list_of(const std::vector<std::string>& files) {
  std::string list;
  for (const std::string& file : files) list += (list.empty() ? "" : ", ") + toml_text(file);
  return "[" + list + "]";
}

std::string method_of(const NewRun& run) {
  if (!run.method.empty()) return run.method;
  return is_preset(run.model) ? "full" : "lora";
}

/// The use of the first file. A file that cannot be read is reported later.
ExampleUse use_of(const NewRun& run) {
  const std::vector<std::string> files = files_of(run.data);
  return files.empty() || !is_file(files[0]) ? ExampleUse::single : use_of_examples(files[0]);
}

std::string settings_of(const NewRun& run, const UsualValues& usual) {
  const std::string method = method_of(run);
  std::string text = "[optimizer]\n" + usual.optimizer() + usual.preference();
  if (method != "full") text += "[lora]\nr = 16\nlora_alpha = 32\ntarget_modules = \"all-linear\"\n";
  if (method == "qlora") text += "quantization = \"nf4\"\n";
  return text;
}

/// Messages name the flags that gave the keys.
void name_flags(Config& config, const NewRun& run) {
  const auto name = [&](const char* key, bool given, const std::string& flag) {
    if (given && !config.overridden.contains(key)) config.origin[key] = flag;
  };
  name("data.train", true, "--data " + run.data);
  name("data.tokenizer", !run.tokenizer.empty(), "--tokenizer " + run.tokenizer);
  name(is_preset(run.model) ? "model.preset" : "model.path", true, "--model " + run.model);
  name("training.steps", run.steps > 0, text("--steps ", run.steps));
  name("training.global_batch_size", run.global_batch > 0, text("--global-batch ", run.global_batch));
}

bool holds_examples(const NewRun& run) {
  const std::vector<std::string> files = files_of(run.data);
  return std::ranges::any_of(files, [](const std::string& file) { return data_kind(file).starts_with("json"); });
}

std::int64_t rows_of(const NewRun& run, const MachineRequest& machine, std::int64_t seq_len) {
  if (run.global_batch > 0) return run.global_batch;
  const bool pretrains = is_preset(run.model) && machine.name != "here";
  const std::int64_t wanted = pretrains ? 524288 / seq_len : 32, ranks = ranks_of(machine);
  return std::max(ranks, (wanted + ranks - 1) / ranks * ranks);
}

}  // namespace

std::vector<std::string> files_of(const std::string& data) {
  std::vector<std::string> files;
  std::istringstream words(data);
  for (std::string file; std::getline(words, file, ',');)
    if (!file.empty()) files.push_back(file);
  return files;
}

bool NewRun::sets(const std::string& prefix) const {
  return std::ranges::any_of(overrides, [&](const std::string& setting) { return setting.starts_with(prefix); });
}

void check_model(const std::string& model) {
  if (is_preset(model)) return;
  if (!is_there(model))
    throw InputError("--model " + model + ": is neither a path here nor a preset" +
                     choice_among(model, preset_names()) + hub_hint(model));
  if (is_folder(model) && !is_there(model + "/config.json"))
    throw InputError("--model " + model + ": has no config.json; it must be a Hugging Face model directory");
  parse_config("[job]\noutput_dir = \"out\"\n[model]\npath = " + toml_text(model) +
                   "\n[data]\ntrain = [\"a.bin\"]\n[training]\nsteps = 1\nseq_len = 1\n",
               "--model " + model);
}

void check_data(const std::string& data) {
  const std::vector<std::string> files = files_of(data);
  if (files.empty()) throw InputError("--data " + data + ": names no file");
  for (const std::string& file : files) {
    if (const std::string why = why_no_data_name(file); !why.empty()) throw InputError("--data " + file + ": " + why);
    if (!is_file(file)) throw InputError("--data " + file + ": is no file here");
  }
}

bool needs_tokenizer(const NewRun& run) {
  return lacks_tokenizer(run.model, files_of(run.data), run.tokenizer, run.overrides);
}

void check_tokenizer(const std::string& path) {
  if (!Tokenizer::lies_at(path))
    throw InputError("--tokenizer " + path + ": is neither a tokenizer.json or tokenizer.model nor a folder with one");
}

void check_machine(const std::string& machine) {
  if (machine != "here") node_sheet(machine);
}

bool takes_preferences(const NewRun& run) { return use_of(run) != ExampleUse::single || run.sets("preference."); }

Config config_of(const NewRun& run, const MachineRequest& machine) {
  const bool preset = is_preset(run.model);
  std::string file = "[job]\noutput_dir = " + toml_text(run.output_dir) + "\n[model]\n" + (preset ? "preset" : "path") +
                     " = " + toml_text(run.model) + "\n[data]\ntrain = " + list_of(files_of(run.data)) + "\n";
  if (!run.tokenizer.empty()) file += "tokenizer = " + toml_text(run.tokenizer) + "\n";
  if (run.packs && !takes_preferences(run) && holds_examples(run)) file += "packing = true\n";
  file += "[training]\nseq_len = 1\n";
  const UsualValues usual{preset, method_of(run) != "full", use_of(run)};
  file += run.steps > 0 ? text("steps = ", run.steps, "\n") : usual.length();
  file += "[zero]\nstage = 1\n" + settings_of(run, usual);
  Config config = parse_config(file, "the new configuration", run.overrides, Contradictions::refused, run.places);
  name_flags(config, run);
  enlarge_vocabulary(config);
  set_usual_warmup(config);
  const ModelConfig model = model_config_of(config);
  check_context("--seq-len", run.seq_len, model);
  if (!config.is_given("training.seq_len") || config.training.seq_len == 1) {
    const std::int64_t usual = machine.name == "here" ? 1024 : 2048;
    config.training.seq_len = run.seq_len > 0 ? run.seq_len : std::min(usual, model.max_position_embeddings);
  }
  if (!config.training.global_batch_size)
    config.training.global_batch_size = rows_of(run, machine, config.training.seq_len);
  validate_for_model(config, model);
  check_files(config, machine.name == "here" ? FileNeed::estimate : FileNeed::inputs);
  return config;
}

std::vector<std::string> keys_to_show(const Config& config) {
  std::vector<std::string> keys{"training.seq_len",
                                "training.local_batch_size",
                                "training.global_batch_size",
                                "training.precision",
                                "optimizer.name",
                                "optimizer.lr",
                                "lr_scheduler.type",
                                "zero.stage",
                                "activation_checkpoint.mode"};
  if (config.lora)
    for (const char* key : {"lora.r", "lora.lora_alpha", "lora.target_modules", "lora.quantization"})
      keys.emplace_back(key);
  if (config.preference)
    for (const char* key : {"preference.method", "preference.beta"}) keys.emplace_back(key);
  return keys;
}

}  // namespace zero
