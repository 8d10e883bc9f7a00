#pragma once
// ChainPass: the way of one micro-batch through a chain of units, forward and back. It brings each unit's weights before
// they are used, lets them go afterwards, and hands gradients to their groups. Several may be under way, each with a
// context of its own.
#include <functional>
#include <vector>

#include "comm/stream.h"
#include "zero/core/backward_hooks.h"
#include "zero/core/parameter_group.h"

namespace zero {

/// A chain, the groups that its units use, and how it is run through.
struct ChainGroups {
  Chain chain;
  std::vector<std::unique_ptr<ParameterGroup>> groups = {};
  std::vector<std::vector<ParameterGroup*>> needed_by = {};  // by unit: its own groups, and those that it borrows from
  std::vector<ParameterGroup*> spanning = {};                // groups of the whole model
  SideStream gather_stream = {}, reduce_stream = {};
  bool overlap = false;              // gathers run ahead by one unit
  bool gathers = false;              // some weights come and go
  int recompute_every = 0;           // every k-th block is recomputed in backward; 0: none
  bool recompute_attention = false;  // the attention half of every block is
  std::vector<class ChainPass*> under_way = {};
  bool in_step = false;  // some micro-batches of a step have had their backward

  ~ChainGroups() { end_passes(); }
  std::vector<ParameterGroup*> trained() const;
  /// Before weights change: passes that are under way let go of theirs, and have no backward any more.
  void end_passes();
};

class ChainPass final : private BackwardHooks {
 public:
  /// What is made of the last unit's input.
  using Head = std::function<at::Tensor(Unit& head, const at::Tensor& x)>;

  /// Runs forward; weights of passes that are under way are let go, and come back for their backward. The batch of the
  /// context outlives the pass. Without `head` the last unit's forward.
  ChainPass(ChainGroups& groups, const ForwardContext& context, MicroBatch micro, const Head& head = {});
  /// Lets go of what is open: of a pass whose backward never came too.
  ~ChainPass() override;
  ChainPass(const ChainPass&) = delete;
  ChainPass& operator=(const ChainPass&) = delete;

  /// The loss summed over the batch's trained tokens (not averaged), a scalar that requires grad; or what the head made.
  const at::Tensor& result() const { return result_; }
  /// Gradients of scale x loss are added to those of the step and reduced as the stage wants it. Once, before weights
  /// change, and within a step in the order of its micro-batches: first ... last. The result's graph is of no use to
  /// others: it knows this pass.
  void backward(double scale);

 private:
  friend struct ChainGroups;

  void run(const Head& head);
  void run_backward(double scale);
  void end() noexcept;
  at::Tensor run_unit(int unit, const at::Tensor& x);
  bool recomputes(int unit) const;
  bool exists(int unit) const { return unit >= 0 && unit < int(groups_.chain.size()); }
  void open(int unit, Phase phase);
  void prefetch(int unit, Phase phase);
  void close(int unit);
  void close_units();
  void close_others();
  void close_all();
  void before_backward(int unit) override;
  void after_backward(int unit) override;

  ChainGroups& groups_;  // not looked at after the end
  bool ended_ = false;
  ForwardContext context_;
  MicroBatch micro_;
  at::Tensor result_;
  std::vector<bool> is_open_, is_collected_;  // by unit
  bool spanning_open_ = false;
};

}  // namespace zero
