#pragma once
// Writes the trained weights as a Hugging Face directory, one group at a time: no rank ever holds the model whole.
#include <string>

#include "models/formats/hf_directory.h"
#include "models/model.h"
#include "zero/core/engine.h"

namespace zero {

/// Rank 0 writes `folder`, the others send. Collective; a failure on rank 0 is the same Error on all ranks.
void save_model(Engine& engine, const Model& model, const std::string& folder, const HfWriteOptions& options);

}  // namespace zero
