#pragma once
// Builds the model of a run with its adapters, and the source of its weights.
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
  Model model;                            // whole, as files hold it
  Model own;                              // this rank's slices on the tensor axis; `model` if it has only one rank
  std::shared_ptr<WeightSource> weights;  // null if not requested
  std::optional<LoraOptions> lora;
  std::shared_ptr<PissaWeights> pissa;           // a second source of the weights if adapters are initialised by PiSSA
  std::shared_ptr<const AdapterContents> start;  // the adapter of lora.adapter; null if none
};

/// Returns the options of [lora]; none without the section. With lora.adapter, they come from its adapter_config.json.
/// Throws InputError if other given keys disagree with that file.
std::optional<LoraOptions> lora_options_of(const Config& config);

/// Returns the adapter of lora.adapter for the model; null if there is none. The model may already have adapters.
/// Throws InputError if the adapter cannot be trained further.
std::shared_ptr<const AdapterContents> start_of(const Config& config, const Model& model);

/// Builds the model, adds adapters, and checks the name and shape of every weight. Reads no weights yet. `place`: this
/// rank's place along the tensor axis.
RunModel make_run_model(const Config& config, const ModelConfig& model, bool with_weights, SlicePlace place = {});

/// Returns warnings about settings that may not be what the user meant, one sentence each.
std::vector<std::string> config_warnings(const Config& config, RunModel& run);

}  // namespace zero
