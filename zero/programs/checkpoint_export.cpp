#include "zero/programs/checkpoint_export.h"

#include <ATen/ATen.h>

#include <filesystem>

#include "base/error.h"
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

/// The configuration with its paths as the run's directory makes them.
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

/// What a checkpoint is not good for is told as an input that is refused.
template <class Work>
auto as_input(const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw InputError(error.what());
  }
}

/// Refuses a file of lora.adapter that is no longer the one whose frozen tensors the run took.
void require_same_start(const RunModel& run, const Settings& settings) {
  if (!run.start || run.start->beside().empty()) return;
  const std::string& path = run.start->file().path();
  for (const auto& [key, value] : settings)
    if (key == "lora.adapter" && value != file_mark(path))
      throw InputError(text(path, ": has changed since the run began, and the run's adapter holds \"",
                            run.start->beside().front().name, "\" of it: bring the file back"));
}

}  // namespace

CheckpointExport::CheckpointExport(const std::string& folder) {
  as_input([&] {
    states_ = std::make_shared<SavedStates>(calls_, folder);
    states_->verify();
  });
  const RunDescription& run = states_->manifest().run;
  config_ = parse_config(run.configuration, folder + "/manifest.json");
  model_ = parse_model_config(run.model_config, folder + "/manifest.json");
}

std::vector<ReadPath> CheckpointExport::reads() const {
  Config seen = seen_from(states_->manifest().run.directory, config_);
  seen.data.train.clear();
  seen.data.validation.clear();
  return read_paths_of(seen);
}

std::shared_ptr<WeightSource> CheckpointExport::weights() const { return std::make_shared<SavedWeights>(states_); }

HfWriteOptions CheckpointExport::options() const {
  return write_options_of(seen_from(states_->manifest().run.directory, config_));
}

void CheckpointExport::write_adapter(const std::string& folder) const {
  const Config seen = seen_from(states_->manifest().run.directory, config_);
  const bool pissa =
      config_.lora->init_lora_weights == "pissa" && config_.lora->adapter.empty();  // what it began with is made anew
  RunModel run = make_run_model(seen, model_, pissa);
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
