#pragma once
// ChainPass: the way of one micro-batch through a chain of units, forward and back. It brings each unit's weights before
// they are used, lets them go afterwards, and hands gradients to their groups. Several may be under way, each with a
// context of its own.
#include <functional>
#include <vector>

#include "comm/stream.h"
#include "models/loss_terms.h"
#include "zero/core/backward_hooks.h"
#include "zero/core/chain.h"
#include "zero/core/unit_groups.h"

namespace zero {

/// How a chain is run through.
struct ChainRun {
  Chain chain;
  int recompute_every = 0;           // every k-th block is recomputed in backward; 0: none
  bool recompute_attention = false;  // the attention half of every block is
  bool keep_inputs = false;          // as ForwardContext
};

class ChainPass final : private BackwardHooks, private WeightUser {
 public:
  /// Makes something else of the last unit's input; `context` is the pass's own.
  using Head = std::function<at::Tensor(Unit& head, const at::Tensor& x, const ForwardContext& context)>;

  /// Runs forward; weights of passes that are under way are let go, and come back for their backward. The batch of the
  /// context outlives the pass. Without `head` the last unit's forward.
  ChainPass(UnitGroups& groups, const ChainRun& run, const ForwardContext& context, MicroBatch micro,
            const Head& head = {});
  /// Lets go of what is open: of a pass whose backward never came too.
  ~ChainPass() override;
  ChainPass(const ChainPass&) = delete;
  ChainPass& operator=(const ChainPass&) = delete;

  /// The loss summed over the batch (not averaged) with the terms that units added, a scalar that requires grad; or what
  /// the head made. Without gradients the loss alone.
  const at::Tensor& result() const { return result_; }
  /// The figures that the loss and its terms report.
  const LossFigures& figures() const { return context_.terms->figures(); }
  /// Gradients of scale x loss are added to those of the step and reduced as the stage wants it; of a loss that is not
  /// finite they are not either, so that the step's norm tells of it on all ranks. Once, before weights
  /// change, and within a step in the order of its micro-batches: first ... last. The result's graph is of no use to
  /// others: it knows this pass.
  void backward(double scale);

 private:
  void run(const Head& head);
  void run_backward(double scale);
  void end() noexcept override;
  void pause() override { close_units(); }
  at::Tensor run_unit(int unit, const at::Tensor& x);
  bool recomputes(int unit) const;
  bool exists(int unit) const { return unit >= 0 && unit < int(run_.chain.size()); }
  void open(int unit, Phase phase);
  void prefetch(int unit, Phase phase);
  void close(int unit);
  void close_units();
  void close_others();
  void close_all();
  void before_backward(int unit) override;
  void after_backward(int unit) override;

  UnitGroups& groups_;  // not looked at after the end
  const ChainRun& run_;
  bool ended_ = false;
  LossTerms terms_;
  ForwardContext context_;
  MicroBatch micro_;
  at::Tensor result_;
  std::vector<bool> is_open_, is_collected_;  // by unit
  bool spanning_open_ = false;
};

}  // namespace zero
