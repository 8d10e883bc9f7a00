#pragma once
// The families of models that can be built, by the model_type of their config.json.
#include <string>
#include <vector>

#include "models/model.h"

namespace zero {

struct ModelFamily {
  std::string model_type;
  Model (*make)(const ModelConfig& config);
};

const std::vector<ModelFamily>& model_families();

/// The chain of the configuration's family; allocates no weights. InputError that lists the families for an unknown one.
Model make_model(const ModelConfig& config);

}  // namespace zero
