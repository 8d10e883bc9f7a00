#pragma once
// ChainPass: the way of one micro-batch through a chain of units, forward and back. It gathers each unit's weights
// before they are used, reshards them afterwards, and hands gradients to their groups. Several passes may be under way,
// each with a context of its own.
#include <functional>
#include <vector>

#include "comm/stream.h"
#include "models/loss_terms.h"
#include "zero/core/backward_hooks.h"
#include "zero/core/chain.h"
#include "zero/core/unit_groups.h"

namespace zero {

/// The activations that are kept between a micro-batch's forward and its backward.
struct KeptOptions {
  int recompute_every = 0;           // every k-th block is recomputed in backward; 0: none, 1: all
  bool recompute_attention = false;  // the attention half of every block is recomputed instead
  bool keep_inputs = false;          // outputs of norms and activations are kept for backward, not computed again

  auto operator<=>(const KeptOptions&) const = default;
};

/// A chain, the groups of its units, and the way in which passes run through it.
struct ChainRun : KeptOptions {
  Chain chain;
  UnitGroups& groups;
};

class ChainPass final : private BackwardHooks, private WeightUser {
 public:
  /// Computes the result from the last unit's input. `context`: the pass's own.
  using Head = std::function<at::Tensor(Unit& head, const at::Tensor& x, const ForwardContext& context)>;

  /// Runs forward. Other passes that are under way reshard their weights, and gather them again for their backward. The
  /// batch of the context must outlive the pass, and so must `run` until end(). `head` runs instead of the last unit's
  /// forward. Collective.
  ChainPass(const ChainRun& run, const ForwardContext& context, MicroBatch micro, const Head& head = {});
  /// Reshards what is open, also if backward never came.
  ~ChainPass() override;
  ChainPass(const ChainPass&) = delete;
  ChainPass& operator=(const ChainPass&) = delete;

  /// The loss summed over the batch (not averaged) with the terms that units added, a scalar that requires grad; or the
  /// result of `head`. If autograd is off, the loss without the terms.
  const at::Tensor& result() const { return result_; }
  /// The figures that the loss and its terms report.
  const LossFigures& figures() const { return context_.terms->figures(); }
  /// Adds the gradients of scale x loss to those of the step, and reduces them as the stage wants it. If the loss is
  /// not finite, the gradients are not either: the step's norm then shows it on all ranks. Call it once, before weights
  /// change, and in the order of the step's micro-batches: first ... last. The result's graph must not be used
  /// otherwise, since its nodes call this pass. Collective.
  void backward(double scale);

 private:
  void run_backward(double scale);
  void end() noexcept override;
  void pause() override { close_units(); }
  at::Tensor run_unit(int unit, const at::Tensor& x);
  bool recomputes(int unit) const;
  bool exists(int unit) const { return unit >= 0 && unit < int(open_.size()); }
  void open(int unit, Phase phase);
  void prefetch(int unit, Phase phase);
  void close(int unit);
  void close_units();
  void close_others();
  void close_all();
  void before_backward(int unit) override;
  void after_backward(int unit) override;

  const ChainRun& run_;  // not used after end()
  UnitGroups& groups_;   // not used after end()
  bool ended_ = false;
  LossTerms terms_;
  ForwardContext context_;
  MicroBatch micro_;
  at::Tensor result_;
  std::vector<std::size_t> open_;   // by unit: how many of its groups are unsharded, in their order
  std::size_t spanning_open_ = 0;   // of the groups that span the model
  std::vector<bool> is_collected_;  // by unit
};

}  // namespace zero
