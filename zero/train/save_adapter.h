#pragma once
// Writes the trained adapter as PEFT lays it out.
#include <string>

#include "models/lora.h"
#include "zero/engine.h"

namespace zero {

/// Rank 0 writes `folder`, the others send. `base` is named in adapter_config.json. Collective; a failure on rank 0 is the
/// same error on all ranks, and a tensor that is missing or empty is one.
void save_adapter(Engine& engine, const LoraOptions& options, const std::string& folder, const std::string& base);

}  // namespace zero
