#pragma once
// ChainPass: takes one micro-batch forward and backward through a chain of units, or through one run of the chain. It
// gathers each unit's weights before they are used, reshards them afterwards, and hands gradients to their groups.
// Several passes may be in progress, each with its own context.
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
  bool keep_inputs = false;          // inputs of matrix products are kept for backward instead of recomputed
  std::int64_t mlp_tokens = 0;       // tokens that MLPs process at a time; backward recomputes each tile. 0: all
  bool inputs_on_host = false;       // inputs of recomputed blocks wait in host memory

  auto operator<=>(const KeptOptions&) const = default;
};

/// A run of a chain's units with their groups: all units, or some that belong to one pipeline stage.
struct ChainRun : KeptOptions {
  Chain chain;  // all units
  UnitGroups& groups;
  UnitRun units;
  int index = 0;                             // of this run among the chain's runs
  std::function<void()> between_units = {};  // called between units' computations; may be empty

  bool is_first() const { return units.begin == 0; }
  bool is_last() const { return units.end == int(chain.size()); }
};

class ChainPass final : private BackwardHooks, private WeightUser {
 public:
  /// Computes the result from the last unit's input. `context`: the pass's context.
  using Head = std::function<at::Tensor(Unit& head, const at::Tensor& x, const ForwardContext& context)>;

  /// Runs forward. First makes other passes in progress reshard their weights. Those passes gather the weights again
  /// for backward. The context's batch must outlive the pass, and `run` must live until end(). `x`: the previous run's
  /// result, as a leaf; undefined for the first run. `head` replaces the forward of the chain's last unit. Collective.
  ChainPass(const ChainRun& run, const ForwardContext& context, MicroBatch micro, const at::Tensor& x = {},
            const Head& head = {});
  /// Reshards all units that are still unsharded, even if backward never ran.
  ~ChainPass() override;
  ChainPass(const ChainPass&) = delete;
  ChainPass& operator=(const ChainPass&) = delete;

  /// For the last run: the result of `head`, or the loss, a scalar that requires grad. The loss is summed over the
  /// batch, not averaged, and includes the terms that the run's units added. If autograd is off, the loss lacks those
  /// terms. For any other run: the next run's input.
  const at::Tensor& result() const { return result_; }
  /// Returns the loss of this run's units as a detached scalar. For the last run this is result(), for any other run
  /// the sum of its terms; undefined if there are none.
  at::Tensor loss() const { return is_last_ ? result_.detach() : context_.terms->sum(); }
  /// The metrics that the loss and its terms report.
  const LossFigures& figures() const { return context_.terms->figures(); }
  /// Adds the gradients of scale x loss to those of the step, and reduces them as the ZeRO stage requires. If the loss
  /// is not finite, neither are the gradients, and the step's norm shows it on all ranks. Call it once per pass, before
  /// weights change, in the order of the step's micro-batches. The result's graph must not be used in any other way,
  /// since its nodes call this pass. `of_result`: the gradient of the result, for all runs but the last; undefined if
  /// the result has none. Collective.
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
  static bool expected_early(const ParameterGroup& group);
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
  std::vector<std::size_t> open_;   // by unit: how many of its groups, in order, are unsharded
  std::size_t spanning_open_ = 0;   // the same for groups that span the run
  std::vector<bool> is_collected_;  // by unit
  std::optional<KeptInputs> kept_;  // the inputs of recomputed units, if they wait in host memory
};

}  // namespace zero
