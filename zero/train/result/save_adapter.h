#pragma once
// Writes the trained adapter in PEFT's layout.
#include <string>

#include "models/formats/tokenizer_files.h"
#include "zero/config/run_model.h"
#include "zero/core/engine.h"

namespace zero {

/// Rank 0 writes `folder`, the others send. Collective. A failure on rank 0 is the same error on all ranks, and a
/// missing or empty tensor is a failure.
void save_adapter(Engine& engine, const RunModel& run, const std::string& folder, const std::string& base,
                  const TokenizerSource& tokenizer);

}  // namespace zero
