#pragma once
// UnitRunner: trains a model's units over sharded states, either as a chain (zero/core) or as a torch::nn module
// (zero/modules).
#include <memory>

#include "models/model.h"
#include "models/weight_source.h"
#include "zero/core/engine.h"

namespace zero {

class UnitRunner {
 public:
  virtual ~UnitRunner() = default;

  /// Runs a micro-batch forward. The context and its batch must live until backward() has returned. Collective.
  virtual void forward(const ForwardContext& context, MicroBatch micro) = 0;
  /// Accumulates the gradients of `scale` times the micro-batch's summed loss. Returns the summed loss. Collective.
  virtual double backward(double scale) = 0;
  /// Takes the optimizer step, without clipping. `loss` is the sum over the step's micro-batches. Collective.
  virtual void update(double lr, double loss) = 0;
};

/// The model and the mesh must outlive the runner. Both functions fill the weights from the source. Collective.
std::unique_ptr<UnitRunner> chain_runner(const Model& model, Mesh& mesh, const EngineOptions& options,
                                         WeightSource& weights);
/// At most `options.open_groups` units are unsharded at once. Options that apply only to chains have no effect: no
/// block is recomputed.
std::unique_ptr<UnitRunner> module_runner(const Model& model, Mesh& mesh, const EngineOptions& options,
                                          WeightSource& weights);

}  // namespace zero
