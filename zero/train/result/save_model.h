#pragma once
// Writes the trained weights as a Hugging Face directory, one group at a time, so that no rank ever holds the whole
// model.
#include <string>

#include "models/formats/hf_directory.h"
#include "models/model.h"
#include "zero/core/engine.h"

namespace zero {

/// Rank 0 writes `folder`, and the other ranks send. If rank 0 fails, all ranks throw the same Error. Collective.
void save_model(Engine& engine, const Model& model, const std::string& folder, const HfWriteOptions& options);

}  // namespace zero
