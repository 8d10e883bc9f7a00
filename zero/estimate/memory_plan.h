#pragma once
// MemoryPlan: the bytes that a rank will hold, by purpose, between steps and at the peak of a step. It adds up the
// allocations of an engine and of a micro-batch, both of which run on Meta.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

#include "zero/config/batch_arithmetic.h"
#include "zero/config/config.h"
#include "zero/core/engine.h"
#include "zero/estimate/activation_plan.h"
#include "zero/estimate/meta_rank.h"

namespace zero {

/// The training setup: what is trained, the number of ranks, and the places of states.
struct MemoryWork : RankSetting {
  EngineOptions engine;        // `offload` is ignored: RankSetting defines it
  ActivationWork activations;  // `engine` determines recomputation and type, RankSetting the device
  bool copies_checkpoints = false;
};

/// Bytes of one rank.
struct MemoryPlan {
  std::int64_t parameters = 0, gradients = 0,
               optimizer = 0;  // held in memory between steps, including padding and a disk tier's buffers
  std::int64_t gather_buffers = 0, reduce_buffers = 0;
  std::int64_t sums = 0;       // GPU run with several ranks: maximum bytes in flight for reductions
  std::int64_t workspace = 0;  // GPU run: for matrix products
  ActivationBytes activations;
  std::int64_t matrices = 0;    // in addition to the bytes between steps, while Muon orthogonalises whole matrices
  std::int64_t load = 0;        // in addition to the bytes between steps, while weights are loaded
  std::int64_t save = 0;        // likewise, while the model or the adapter is written at the end
  std::int64_t copy = 0;        // copy of this rank's part of a checkpoint; in a GPU run it counts in `host`
  std::int64_t disk = 0;        // files of the disk tier
  std::int64_t host = 0;        // GPU run, in host memory: offloaded states, disk buffers, a checkpoint copy
  std::int64_t pinned = 0;      // GPU run: page-locked host memory
  std::int64_t checkpoint = 0;  // on disk, all ranks together; 0 if the planner leaves it out

  std::int64_t at_rest() const {
    return parameters + gradients + optimizer + gather_buffers + reduce_buffers + sums + workspace + copy +
           activations.at_rest;
  }
  /// The peak while a micro-batch is computed.
  std::int64_t micro_batch_peak() const {
    return at_rest() - activations.at_rest + activations.batch + activations.peak();
  }
  /// The tracker's peak during training.
  std::int64_t training_peak() const { return std::max(micro_batch_peak(), at_rest() + matrices); }
  /// The peak of the whole run.
  std::int64_t peak() const;
};

/// Makes plans for one model. Caches the result of each micro-batch run.
class MemoryPlanner {
 public:
  /// `model`: as trained; must outlive the planner. Its parameters have no tensors afterwards. `sizes_checkpoints`:
  /// plans have the size of a checkpoint, which takes time in proportion to the ranks.
  explicit MemoryPlanner(const Model& model, bool sizes_checkpoints = true)
      : model_(model), sizes_checkpoints_(sizes_checkpoints) {}

  const Model& model() const { return model_; }
  /// Returns the plan. With a pipeline, it is the plan of the stage with the most memory.
  MemoryPlan plan(MemoryWork work);

 private:
  MemoryPlan plan_of_stage(const MemoryWork& work);
  const ActivationBytes& activations(const MemoryWork& work, std::optional<at::ScalarType> written);
  void add_checkpoint(MemoryPlan& plan, MetaRank& rank, const MemoryWork& work) const;

  const Model& model_;
  bool sizes_checkpoints_;
  std::map<ActivationWork, ActivationBytes> known_;
};

MemoryPlan plan_memory(const Model& model, const MemoryWork& work);

/// The training setup that a configuration describes.
MemoryWork memory_work_of(const Config& config, const BatchArithmetic& batch);

/// Bytes of parameters, gradients and optimizer state of one rank according to the ZeRO paper (Rajbhandari et al. 2020,
/// figure 1), for `trained` elements plus `frozen_bytes` of frozen weights.
struct PaperBytes {
  double parameters = 0, gradients = 0, optimizer = 0;
  double sum() const { return parameters + gradients + optimizer; }
};
PaperBytes paper_bytes(double trained, double frozen_bytes, const EngineOptions& engine, int ranks);

/// Returns the bytes of the frozen weights as `engine` stores them: quantized or in the compute type.
double frozen_bytes(const Model& model, const EngineOptions& engine);

}  // namespace zero
