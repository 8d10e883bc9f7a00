#pragma once
// The model of a run, with its adapters, and where its weights come from.
#include <memory>
#include <optional>
#include <string>

#include "models/lora/adapter_contents.h"
#include "models/lora/lora.h"
#include "models/lora/pissa.h"
#include "models/model.h"
#include "models/weight_source.h"
#include "zero/config/config.h"

namespace zero {

struct RunModel {
  Model model;
  std::shared_ptr<WeightSource> weights;  // null where none was asked for
  std::optional<LoraOptions> lora;
  std::shared_ptr<PissaWeights> pissa;           // the weights again, where adapters start by PiSSA
  std::shared_ptr<const AdapterContents> start;  // the adapter of lora.adapter; null without
};

/// [lora] as options; with lora.adapter the directory's adapter_config.json decides, and keys given beside it must
/// agree (InputError). None without the section.
std::optional<LoraOptions> lora_options_of(const Config& config);

/// The adapter of lora.adapter over the model, which may be adapted already; null without one. InputError for one that
/// cannot be trained further.
std::shared_ptr<const AdapterContents> start_of(const Config& config, const Model& model);

/// Builds the model, adds adapters, and checks that every weight is there in its shape. Reads no weights yet.
RunModel make_run_model(const Config& config, const ModelConfig& model, bool with_weights);

/// What may not be what the user meant, a sentence each.
std::vector<std::string> doubts_about(const Config& config, RunModel& run);

}  // namespace zero
