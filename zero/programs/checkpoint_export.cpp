#include "zero/programs/checkpoint_export.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/files/own_files.h"
#include "base/log.h"
#include "models/families/config_json.h"
#include "models/families/families.h"
#include "models/lora/adapter_writer.h"
#include "models/text/chat_template.h"
#include "zero/checkpoint/saved_weights.h"
#include "zero/config/run_model.h"
#include "zero/config/setup.h"
#include "zero/train/resume_settings.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

/// The configuration with its paths relative to the run's directory.
Config seen_from(const fs::path& directory, Config config) {
  const auto resolve = [&](std::string& path) {
    if (!path.empty()) path = (directory / path).lexically_normal().string();
  };
  if (config.model.path) resolve(*config.model.path);
  resolve(config.data.tokenizer);
  if (!ChatTemplate::is_known(config.data.chat_template)) resolve(config.data.chat_template);
  if (config.lora) resolve(config.lora->adapter);
  return config;
}

/// Returns true if a file is in the folder `place`, or next to the file `place`.
bool lies_in(const std::string& place, const fs::path& file) {
  const std::string home = tokenizer_home(place);
  const fs::path folder = file.parent_path();
  return !home.empty() && (is_same_place(folder, home) || (folder.filename() == "additional_chat_templates" &&
                                                           is_same_place(folder.parent_path(), home)));
}

/// Throws InputError for base weights other than those on which the checkpoint's adapters were trained.
void require_same_base(const std::string& base, const SavedStates& states) {
  for (const auto& [key, mark] : states.manifest().run.settings)
    if (key == "model.path" && mark == file_mark(base)) return;
  throw InputError(text(states.folder(), ": its adapters began with other weights than those of ", base,
                        " now: name the base model by --base"));
}

/// Rethrows errors in the checkpoint as InputError.
template <class Work>
auto as_input(const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw InputError(error.what());
  }
}

/// Throws InputError if the file of lora.adapter has changed since the run read its frozen tensors.
void require_same_start(const RunModel& run, const Settings& settings) {
  if (!run.start || run.start->beside().empty()) return;
  const std::string& path = run.start->file().path();
  for (const auto& [key, value] : settings)
    if (key == "lora.adapter" && value == file_mark(path)) return;
  throw InputError(text(path, ": has changed since the run began, and the run's adapter holds \"",
                        run.start->beside().front().name, "\" of it: bring the file back"));
}

}  // namespace

CheckpointExport::CheckpointExport(const std::string& folder, const std::string& base, const std::string& tokenizer)
    : base_(base), tokenizer_(tokenizer) {
  require_own_files(folder);
  as_input([&] {
    states_ = std::make_shared<SavedStates>(calls_, folder);
    states_->verify();
  });
  const RunDescription& run = states_->manifest().run;
  config_ = parse_config(run.configuration, folder + "/manifest.json");
  model_ = parse_model_config(run.model_config, folder + "/manifest.json");
}

/// Returns the configuration with paths as the run saw them, except those that the user named.
Config CheckpointExport::seen() const {
  Config seen = seen_from(states_->manifest().run.directory, config_);
  if (!base_.empty()) seen.model.path = base_;
  if (!tokenizer_.empty()) seen.data.tokenizer = tokenizer_;
  return seen;
}

std::vector<ReadPath> CheckpointExport::reads() const {
  Config seen = this->seen();
  seen.data.train.clear();
  seen.data.validation.clear();
  return read_paths_of(seen);
}

std::shared_ptr<WeightSource> CheckpointExport::weights() const { return std::make_shared<SavedWeights>(states_); }

HfWriteOptions CheckpointExport::options() const { return write_options_of(seen()); }

void CheckpointExport::require_recorded(const HfWriteOptions& options, std::vector<std::string> named) const {
  named.push_back(base_);
  require_recorded(source_files(options.base, options.tokenizer, ""), named);
}

void CheckpointExport::require_recorded(const std::vector<SourceFile>& files,
                                        const std::vector<std::string>& named) const {
  const auto& recorded = states_->manifest().run.sources;
  const auto file_name = [](const std::string& name) { return name.substr(name.rfind('/') + 1); };
  for (const SourceFile& file : files) {
    const bool is_named =
        std::any_of(named.begin(), named.end(), [&](const auto& place) { return lies_in(place, file.path); });
    if (is_named && file.name != "chat_template") continue;
    const std::string mark = source_marks({file}).front().second;
    const bool known = std::any_of(recorded.begin(), recorded.end(), [&](const auto& each) {
      return file_name(each.first) == file_name(file.name) && each.second == mark;
    });
    if (known) continue;
    const char* remedy = file.name.starts_with("base/")      ? "name the base model by --base"
                         : file.name.starts_with("adapter/") ? "put back the file that the run read"
                                                             : "name the tokenizer by --tokenizer";
    throw InputError(text(states_->folder(), ": was made with ", file.path,
                          recorded.empty() ? ", and does not record" : ", whose content is not",
                          recorded.empty() ? " its content" : " the one that it records",
                          ": a checkpoint, which may come from anybody, is not followed to other files; ", remedy));
  }
}

/// PiSSA's initial adapters are computed again.
bool CheckpointExport::is_pissa() const {
  return config_.lora->init_lora_weights == "pissa" && config_.lora->adapter.empty();
}

void CheckpointExport::check_adapter() const {
  const Config seen = this->seen();
  require_recorded(source_files_of(seen), {base_, tokenizer_});
  if (is_pissa() && seen.model.path) require_same_base(*seen.model.path, *states_);
}

void CheckpointExport::check_base() const {
  const Config seen = this->seen();
  if (base_.empty() && seen.model.path) require_same_base(*seen.model.path, *states_);
}

void CheckpointExport::write_adapter(const std::string& folder) const {
  const Config seen = this->seen();
  RunModel run = make_run_model(seen, model_, is_pissa());
  require_same_start(run, states_->manifest().run.settings);
  AdapterWriter writer(folder, states_->tensors(), family_of(model_.model_type), *run.lora, run.pissa.get(),
                       run.start.get());
  for (const TensorSpec& tensor : states_->tensors()) {
    const at::Tensor value = at::empty(tensor.shape, at::kFloat);
    states_->read(tensor.name, 0, tensor.numel(), {{{"master", at::kFloat}, value.data_ptr()}});
    writer.append(tensor, value);
  }
  writer.finish(base_name_of(config_), tokenizer_source_of(seen));
}

}  // namespace zero
