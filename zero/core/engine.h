#pragma once
// Engine: runs a chain of units on this rank's micro-batches, over model states that lie where the plan says. It owns the
// loop over the chain, so the order of use is known in advance and no hooks are needed.
//
// One training step, A micro-batches:
//   for each micro-batch: pass = forward(context, ...); pass->backward(1 / the denominator of the step)
//   update(learning rate, clipping, loss scale)
// All ranks make the same calls with batches of their own; a rank without work passes a batch of zero rows.
#include "zero/core/chain_pass.h"
#include "zero/core/model_states.h"

namespace zero {

/// The choice of what is kept between a micro-batch's forward and its backward.
struct KeptOptions {
  int recompute_every = 0;           // every k-th block is recomputed in backward; 0: none, 1: all
  bool recompute_attention = false;  // the attention half of every block is recomputed instead
  bool keep_inputs = false;          // what norms and activations give is kept for backward, not computed again

  auto operator<=>(const KeptOptions&) const = default;
};

struct EngineOptions : StatesOptions, KeptOptions {};

class Engine final : public ModelStates {
 public:
  /// The chain and the mesh outlive the engine; the parameters' tensors become the engine's. Collective. Throws
  /// InputError when the placements are no stage.
  Engine(Chain chain, Mesh& mesh, const EngineOptions& options);

  /// One micro-batch through the chain, ready for its backward. load(), resume() and update() end passes whose backward
  /// has not come.
  std::unique_ptr<ChainPass> forward(const ForwardContext& context, MicroBatch micro);

  /// Without gradients: the summed loss; or what `head` makes of the last unit's input, with all its weights in place.
  at::Tensor evaluate(const ForwardContext& context, const ChainPass::Head& head = {});

 private:
  ChainRun run_;
};

}  // namespace zero
