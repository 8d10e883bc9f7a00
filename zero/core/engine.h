#pragma once
// Engine: a chain of units over model states that lie where the plan says. The order in which the chain uses them is
// known in advance, so no hooks are needed.
//
// One training step, A micro-batches:
//   for each micro-batch: ChainPass pass(engine.chain_run(), context, ...); pass.backward(1 / the step's denominator)
//   update(learning rate, clipping, loss scale)
// All ranks make the same calls with batches of their own; a rank without work passes a batch of zero rows.
#include "zero/core/chain_pass.h"
#include "zero/core/model_states.h"

namespace zero {

struct EngineOptions : StatesOptions, KeptOptions {};

class Engine final : public ModelStates {
 public:
  /// The chain and the mesh outlive the engine; the parameters' tensors become the engine's. Collective. Throws
  /// InputError when the placements are no stage.
  Engine(Chain chain, Mesh& mesh, const EngineOptions& options);

  /// For passes through the chain. load(), resume() and update() end passes whose backward has not come.
  const ChainRun& chain_run() const { return run_; }

  /// Without gradients: the summed loss; or the result of `head` on the last unit's input, with all its weights in
  /// place.
  at::Tensor evaluate(const ForwardContext& context, const ChainPass::Head& head = {});

 private:
  ChainRun run_;
};

}  // namespace zero
