#pragma once
// ChainPass: the way of one micro-batch through a chain of units, or one run of it, forward and back. It gathers each
// unit's weights before they are used, reshards them afterwards, and hands gradients to their groups. Several passes
// may be under way, each with a context of its own.
#include <functional>
#include <optional>
#include <vector>

#include "comm/stream.h"
#include "models/loss_terms.h"
#include "models/nn/recompute.h"
#include "zero/core/backward_hooks.h"
#include "zero/core/chain.h"
#include "zero/core/unit_groups.h"

namespace zero {

/// The activations that are kept between a micro-batch's forward and its backward.
struct KeptOptions {
  int recompute_every = 0;           // every k-th block is recomputed in backward; 0: none, 1: all
  bool recompute_attention = false;  // the attention half of every block is recomputed instead
  bool keep_inputs = false;          // outputs of norms and activations are kept for backward, not computed again
  std::int64_t mlp_tokens = 0;       // MLPs take so many tokens at a time, and run each tile again; 0: all
  bool inputs_on_host = false;       // inputs of recomputed blocks wait in host memory

  auto operator<=>(const KeptOptions&) const = default;
};

/// A run of a chain's units, all of them or those of a pipeline's stage, with the groups of its units.
struct ChainRun : KeptOptions {
  Chain chain;  // all units
  UnitGroups& groups;
  UnitRun units;
  int index = 0;                             // among the runs of the chain
  std::function<void()> between_units = {};  // called between the computations of units; may be empty

  bool is_first() const { return units.begin == 0; }
  bool is_last() const { return units.end == int(chain.size()); }
};

class ChainPass final : private BackwardHooks, private WeightUser {
 public:
  /// Computes the result from the last unit's input. `context`: the pass's own.
  using Head = std::function<at::Tensor(Unit& head, const at::Tensor& x, const ForwardContext& context)>;

  /// Runs forward. Other passes that are under way reshard their weights, and gather them again for their backward. The
  /// batch of the context must outlive the pass, and so must `run` until end(). `x`: what the run before this one gave,
  /// a leaf; undefined for the first run. `head` runs instead of the chain's last unit's forward. Collective.
  ChainPass(const ChainRun& run, const ForwardContext& context, MicroBatch micro, const at::Tensor& x = {},
            const Head& head = {});
  /// Reshards what is open, also if backward never came.
  ~ChainPass() override;
  ChainPass(const ChainPass&) = delete;
  ChainPass& operator=(const ChainPass&) = delete;

  /// The last run gives the loss summed over the batch (not averaged) with the terms that its units added, a scalar
  /// that requires grad; or the result of `head`. If autograd is off, the loss comes without the terms. Another run
  /// gives the input of the next one.
  const at::Tensor& result() const { return result_; }
  /// The loss of this run's units, [] without gradient. The last run gives result(), another one the sum of its terms,
  /// undefined if there are none.
  at::Tensor loss() const { return is_last_ ? result_.detach() : context_.terms->sum(); }
  /// The figures that the loss and its terms report.
  const LossFigures& figures() const { return context_.terms->figures(); }
  /// Adds the gradients of scale x loss to those of the step, and reduces them as the stage wants it. If the loss is
  /// not finite, the gradients are not either: the step's norm then shows it on all ranks. Call it once, before weights
  /// change, and in the order of the step's micro-batches: first ... last. The result's graph must not be used
  /// otherwise, since its nodes call this pass. `of_result`: the gradient of the result, for another run than the last;
  /// undefined if the result has none. Collective.
  void backward(double scale, const at::Tensor& of_result = {});

 private:
  void run_backward(double scale, const at::Tensor& of_result);
  void end() noexcept override;
  void pause() override { close_units(); }
  at::Tensor run_unit(int unit, const at::Tensor& x);
  InputPlace place_of(int unit);
  bool recomputes(int unit) const;
  bool exists(int unit) const { return run_.units.has(unit); }
  void pause_between_units() const {
    if (run_.between_units) run_.between_units();
  }
  const std::vector<ParameterGroup*>& spanning() const { return groups_.spanning[std::size_t(run_.index)]; }
  /// The run's trained groups.
  std::vector<ParameterGroup*> trained() const;
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
  bool is_last_;
  LossTerms terms_;
  ForwardContext context_;
  MicroBatch micro_;
  at::Tensor result_;
  std::vector<std::size_t> open_;   // by unit: how many of its groups are unsharded, in their order
  std::size_t spanning_open_ = 0;   // of the groups that span the run
  std::vector<bool> is_collected_;  // by unit
  std::optional<KeptInputs> kept_;  // the inputs of recomputed units, if they wait in host memory
};

}  // namespace zero
