#pragma once
// MemoryPlan: the bytes that a rank will hold, by what they are for, between steps and at the peak of a step: what an
// engine on Meta allocates, and what a micro-batch takes that runs through one.
#include <algorithm>
#include <cstdint>
#include <map>

#include "zero/config/batch_arithmetic.h"
#include "zero/config/config.h"
#include "zero/core/engine.h"
#include "zero/estimate/activation_plan.h"
#include "zero/estimate/meta_rank.h"

namespace zero {

/// What is trained, by how many ranks, and where states live.
struct MemoryWork : RankSetting {
  EngineOptions engine;        // `offload` is not looked at: the setting says what they would be
  ActivationWork activations;  // what is recomputed, and in which type, is taken from `engine`, the device from the
                               // setting
  bool copies_checkpoints = false;
};

/// Bytes of one rank.
struct MemoryPlan {
  std::int64_t parameters = 0, gradients = 0,
               optimizer = 0;  // in memory between steps, with padding and a disk tier's buffers
  std::int64_t gather_buffers = 0, reduce_buffers = 0;
  std::int64_t sums = 0;  // of a GPU run of several ranks: the parts of sums over ranks that are on their way, at most
  std::int64_t workspace = 0;  // of a GPU run: of its matrix products
  ActivationBytes activations;
  std::int64_t matrices = 0;    // beyond what is held between steps, while Muon makes whole ones orthogonal
  std::int64_t load = 0;        // beyond what is held between steps, while weights are loaded
  std::int64_t save = 0;        // the same, while the model, or of a frozen one the adapter, is written at the end
  std::int64_t copy = 0;        // of this rank's part of a checkpoint, of a GPU run in `host`
  std::int64_t disk = 0;        // files of the tier
  std::int64_t host = 0;        // of a GPU run, in host memory: offloaded states, a disk tier's buffers, a copy
  std::int64_t pinned = 0;      // of a GPU run, page-locked host memory
  std::int64_t checkpoint = 0;  // on disk, of all ranks together

  std::int64_t at_rest() const {
    return parameters + gradients + optimizer + gather_buffers + reduce_buffers + sums + workspace + copy +
           activations.at_rest;
  }
  /// While a micro-batch is computed.
  std::int64_t micro_batch_peak() const {
    return at_rest() - activations.at_rest + activations.batch + activations.peak();
  }
  /// While training: what the tracker's peak will be.
  std::int64_t training_peak() const { return std::max(micro_batch_peak(), at_rest() + matrices); }
  /// Of the whole run.
  std::int64_t peak() const;
};

/// Plans for one model. Runs of the same micro-batch are not repeated.
class MemoryPlanner {
 public:
  /// `model` as it will be trained; it outlives the planner. Its parameters have no tensors afterwards.
  explicit MemoryPlanner(const Model& model) : model_(model) {}

  const Model& model() const { return model_; }
  MemoryPlan plan(const MemoryWork& work);

 private:
  const ActivationBytes& activations(const MemoryWork& work, bool fuses_accumulation);

  const Model& model_;
  std::map<ActivationWork, ActivationBytes> known_;
};

MemoryPlan plan_memory(const Model& model, const MemoryWork& work);

/// The work of a run that the configuration describes.
MemoryWork memory_work_of(const Config& config, const BatchArithmetic& batch);

/// Bytes of parameters, gradients and optimizer state of one rank by the ZeRO paper (Rajbhandari et al. 2020, figure
/// 1), for `trained` elements beside `frozen_bytes` of weights that are not trained.
struct PaperBytes {
  double parameters = 0, gradients = 0, optimizer = 0;
  double sum() const { return parameters + gradients + optimizer; }
};
PaperBytes paper_bytes(double trained, double frozen_bytes, const EngineOptions& engine, int ranks);

/// Bytes of the weights that are not trained, as `engine` holds them: quantised or in the compute type.
double frozen_bytes(const Model& model, const EngineOptions& engine);

}  // namespace zero
