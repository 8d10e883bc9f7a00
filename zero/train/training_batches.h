#pragma once
// TrainingBatches: this rank's micro-batches on the engine's device, and the context in which a step runs them.
#include <optional>

#include "zero/config/config.h"
#include "zero/core/engine.h"
#include "zero/data/rows/loader.h"

namespace zero {

/// Returns the batch on the engine's device, with everything that attention needs there.
Batch on_device(const Engine& engine, const Batch& batch);

/// Adds KTO's divergence to a batch (models/loss/kto_loss.h).
void add_divergence(Batch& batch, double divergence);

class TrainingBatches {
 public:
  /// All arguments must outlive the object.
  TrainingBatches(const Config& config, const Engine& engine, Loader& loader)
      : config_(config), engine_(engine), loader_(loader) {}

  Loader& loader() { return loader_; }

  /// From now on, batches have this divergence.
  void set_divergence(double divergence) { divergence_ = divergence; }

  /// Returns micro-batch `index` of a step, on the device. Steps count from 0.
  Batch batch(std::int64_t step, std::int64_t index);
  /// Returns the contexts in which a training step runs its micro-batches, by index. Dropout depends on the seed, the
  /// step and the sample.
  ContextOf contexts(std::int64_t step);

 private:
  const Config& config_;
  const Engine& engine_;
  Loader& loader_;
  std::optional<double> divergence_;
};

}  // namespace zero
