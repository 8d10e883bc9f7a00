#pragma once
// A golden case, made with transformers and PEFT: a run's settings, tokens and results.
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/formats/safetensors.h"
#include "models/unit.h"
#include "zero/core/engine.h"

namespace zero::testing {

struct GoldenCase {
  /// Loads the case with this name under tests/data.
  explicit GoldenCase(const std::string& name);

  /// Windows [first, first + rows) of the case's tokens.
  Batch batch(std::int64_t first_window, std::int64_t rows) const;
  /// Tokens of all windows of one step.
  double tokens_per_step() const { return double(settings["batch"]) * double(settings["seq"]); }
  /// fp32 everywhere, with the case's AdamW settings.
  EngineOptions engine_options(int stage) const;

  std::string folder;
  SafetensorsFile expected;
  nlohmann::json settings;
  std::vector<std::int64_t> tokens;
};

/// Trains the case's steps on this rank. Compares logits and gradients of the first batch, each step's loss, norm and
/// rate, and the trained tensors after the last step.
void train_and_compare(const GoldenCase& golden, Engine& engine, int rank, int micro_batches);

}  // namespace zero::testing
