#pragma once
// Pipeline: this rank's stage of a chain whose runs of units are on the ranks of the pipeline axis. It takes the
// actions of a schedule one by one, and exchanges activations and their gradients with the adjacent stages.
//
// Messages between two stages arrive in the order in which they were sent. A stage knows that order from the schedule,
// so a message that arrives early waits for its action.
#include <ATen/core/TensorBody.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/mesh/mesh.h"
#include "zero/core/chain_pass.h"
#include "zero/core/pipeline/schedule.h"

namespace zero {

struct PipelineOptions {
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  int chunks = 1;  // runs of a stage, for ScheduleKind::interleaved
};

/// Returns the context of micro-batch `index` of a step. Fills `held` with the batch, to which the context points.
using ContextOf = std::function<ForwardContext(std::int64_t index, Batch& held)>;

class Pipeline {
 public:
  /// `runs`: all runs of the chain. `activations`: their type and device. The mesh and the groups must outlive the
  /// pipeline.
  Pipeline(const KeptOptions& kept, const Chain& chain, UnitGroups& groups, const std::vector<UnitRun>& runs,
           Mesh& mesh, const PipelineOptions& options, at::TensorOptions activations);

  /// The losses [micro_batches] in fp64 and the summed metrics. Every stage gets the same values.
  struct Result {
    at::Tensor losses;
    LossFigures figures;
  };
  /// Runs forward and backward of a step's micro-batches, with gradients of `scale` times the loss. Collective.
  Result accumulate(std::int64_t micro_batches, double scale, const ContextOf& context_of);

  /// Runs forward without gradients. Returns the summed loss, or the result of `head` on the last unit's input, on all
  /// stages. Adds the loss's metrics to `figures`, if given. Collective.
  at::Tensor evaluate(const ForwardContext& context, const ChainPass::Head& head, LossFigures* figures);

  /// The order of a step's actions.
  const PipelineSchedule& schedule(std::int64_t micro_batches);
  PipelineTimeline timeline(std::int64_t micro_batches);
  /// "2 stages: units 0 to 12; 13 to 23; up to 2 micro-batches at once on a stage, 25 % of a step spent waiting".
  std::string describe(std::int64_t micro_batches);

 private:
  /// A tensor sent from one run to another: the input of `run`, or the gradient of its result.
  struct Message {
    bool gradient = false;
    int run = 0;
    int micro_batch = 0;

    auto operator<=>(const Message&) const = default;
  };
  /// A micro-batch that is in progress on this stage.
  struct Visit {
    Batch batch;
    ForwardContext context;
    int actions_left = 0;
  };
  /// A run's pass for a micro-batch, between forward and backward.
  struct Live {
    at::Tensor input;
    std::unique_ptr<ChainPass> pass;
  };
  class Step;

  std::vector<Message> messages(const PipelineSchedule& schedule, int from, int to) const;
  bool sends_gradient(int run) const { return trains_before_[std::size_t(run)]; }
  int stage_of(int run) const { return runs_[std::size_t(run)].stage; }
  CallTag tag_of(const Message& message) const;
  at::Tensor place_of(const ForwardContext& context) const;
  void share(Result& result);

  std::vector<UnitRun> runs_;        // of all stages
  std::vector<bool> trains_before_;  // by run: true if a unit before it has trained parameters
  std::map<int, ChainRun> own_;      // this stage's runs, by index
  std::vector<double> costs_;        // by run
  UnitGroups& groups_;
  Communicator& stages_;
  PipelineOptions options_;
  std::int64_t width_;  // width of the activations between units, as of the rows that the first unit looks up
  at::TensorOptions activations_;
  std::map<std::int64_t, PipelineSchedule> schedules_;  // by micro-batches
};

}  // namespace zero
