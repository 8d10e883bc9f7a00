#pragma once
// Engine: a chain of units over model states that lie where the plan says. The order in which the chain uses them is
// known in advance, so no hooks are needed.
//
// One training step: accumulate_gradients() (zero/core/gradient_accumulation.h), then update(). Without a pipeline the
// first is, for each micro-batch:
//   ChainPass pass(engine.chain_run(), context, ...); pass.backward(1 / the step's denominator)
// All ranks make the same calls with batches of their own; a rank without work passes a batch of zero rows.
#include "zero/core/chain_pass.h"
#include "zero/core/model_states.h"
#include "zero/core/pipeline/pipeline.h"

namespace zero {

struct EngineOptions : StatesOptions, KeptOptions {
  PipelineOptions pipeline;  // read if the mesh has a pipeline axis; `runs` then follow from the chain
};

class Engine final : public ModelStates {
 public:
  /// The chain and the mesh outlive the engine; the parameters' tensors become the engine's. A rank has no tensors for
  /// the units of other pipeline stages. Throws InputError when the placements are no stage, or if the chain has too
  /// few units for the pipeline. Collective.
  Engine(Chain chain, Mesh& mesh, const EngineOptions& options);

  /// For passes through the whole chain. load(), resume() and update() end passes whose backward has not come.
  const ChainRun& chain_run() const;
  /// Null: every rank runs the whole chain.
  Pipeline* pipeline() { return pipeline_ ? &*pipeline_ : nullptr; }

  /// Without gradients: the summed loss; or the result of `head` on the last unit's input, with all its weights in
  /// place.
  at::Tensor evaluate(const ForwardContext& context, const ChainPass::Head& head = {});

 private:
  ChainRun run_;
  std::optional<Pipeline> pipeline_;
};

}  // namespace zero
