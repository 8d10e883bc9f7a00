#pragma once
// Engine: runs a chain of units over model states that are placed as the plan says. The order in which the chain uses
// the states is known in advance, so no hooks are needed.
//
// One training step: accumulate_gradients() (zero/core/gradient_accumulation.h), then update(). Without a pipeline,
// accumulate_gradients() does this for each micro-batch:
//   ChainPass pass(engine.chain_run(), context, ...); pass.backward(1 / the step's denominator)
// All ranks make the same calls, each with its own batches. A rank without work passes a batch of zero rows.
#include "zero/core/chain_pass.h"
#include "zero/core/model_states.h"
#include "zero/core/pipeline/pipeline.h"

namespace zero {

struct EngineOptions : StatesOptions, KeptOptions {
  PipelineOptions pipeline;  // used if the mesh has a pipeline axis; `runs` are then derived from the chain
};

class Engine final : public ModelStates {
 public:
  /// The chain and the mesh must outlive the engine, which takes over the parameters' tensors. A rank has no tensors
  /// for the units of other pipeline stages. Throws InputError if the placements match no ZeRO stage, or if the chain
  /// has too few units for the pipeline. Collective.
  Engine(Chain chain, Mesh& mesh, const EngineOptions& options);

  /// The run for passes through the whole chain. load(), resume() and update() end passes whose backward has not yet
  /// run.
  const ChainRun& chain_run() const;
  /// Null: every rank runs the whole chain.
  Pipeline* pipeline() { return pipeline_ ? &*pipeline_ : nullptr; }

  /// Runs forward without gradients. Returns the summed loss, or the result of `head` on the last unit's input; the
  /// last unit's weights are then unsharded. Adds the loss's metrics to `figures`, if given.
  at::Tensor evaluate(const ForwardContext& context, const ChainPass::Head& head = {}, LossFigures* figures = nullptr);

 private:
  ChainRun run_;
  std::optional<Pipeline> pipeline_;
};

}  // namespace zero
