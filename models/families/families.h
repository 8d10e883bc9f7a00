#pragma once
// The supported model families, by the model_type of their config.json.
#include <string>
#include <vector>

#include "models/families/family.h"
#include "models/model.h"

namespace zero {

const std::vector<const Family*>& model_families();

/// The family of a model_type. For an unknown one, throws InputError that lists the families.
const Family& family_of(const std::string& model_type);

/// Builds the chain for the configuration's family. Allocates no weights.
Model make_model(const ModelConfig& config, SlicePlace place = {});

}  // namespace zero
