#pragma once
// Writes the trained adapter as PEFT lays it out.
#include <string>

#include "models/lora.h"
#include "models/pissa.h"
#include "zero/engine.h"

namespace zero {

/// Rank 0 writes `folder`, the others send. `base` is named in adapter_config.json. An adapter that started by PiSSA is
/// written as a plain one of twice the rank over the original base. Collective; a failure on rank 0 is the same error on
/// all ranks, and a tensor that is missing or empty is one.
void save_adapter(Engine& engine, const LoraOptions& options, PissaWeights* pissa, const std::string& folder, const std::string& base);

}  // namespace zero
