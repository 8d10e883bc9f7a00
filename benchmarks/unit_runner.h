#pragma once
// UnitRunner: trains a model's units over sharded states, as a chain (zero/core) or as somebody's module
// (zero/modules).
#include <memory>

#include "models/model.h"
#include "models/weight_source.h"
#include "zero/core/engine.h"

namespace zero {

class UnitRunner {
 public:
  virtual ~UnitRunner() = default;

  /// Runs a micro-batch forward. The context and its batch must stay until backward() has returned. Collective.
  virtual void forward(const ForwardContext& context, MicroBatch micro) = 0;
  /// Adds the gradients of `scale` times the micro-batch's summed loss. Returns that loss. Collective.
  virtual double backward(double scale) = 0;
  /// Takes the step, without clipping. `loss`: the sum over its micro-batches. Collective.
  virtual void update(double lr, double loss) = 0;
};

/// The model and the mesh outlive the runner. Both fill the weights from the source. Collective.
std::unique_ptr<UnitRunner> chain_runner(const Model& model, Mesh& mesh, const EngineOptions& options,
                                         WeightSource& weights);
/// `options.open_groups` units are unsharded at once, at most. Options of a chain have no effect: no block is
/// recomputed.
std::unique_ptr<UnitRunner> module_runner(const Model& model, Mesh& mesh, const EngineOptions& options,
                                          WeightSource& weights);

}  // namespace zero
