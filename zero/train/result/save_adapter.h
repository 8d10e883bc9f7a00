#pragma once
// Writes the trained adapter in PEFT's layout.
#include <string>

#include "models/formats/tokenizer_files.h"
#include "zero/config/run_model.h"
#include "zero/core/engine.h"

namespace zero {

/// Rank 0 writes `folder`, and the other ranks send. If rank 0 fails, all ranks throw the same error. A missing or
/// empty tensor is a failure. Collective.
void save_adapter(Engine& engine, const RunModel& run, const std::string& folder, const std::string& base,
                  const TokenizerSource& tokenizer);

}  // namespace zero
