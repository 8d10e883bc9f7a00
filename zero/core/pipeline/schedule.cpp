#include "zero/core/pipeline/schedule.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

constexpr double backward_cost = 2;  // in forwards: matrix products for inputs and for weights

/// The progress of all runs. Actions take time, and a stage runs one at a time.
class Progress {
 public:
  Progress(const std::vector<UnitRun>& runs, const RunCosts& costs, int stages, int micro_batches)
      : runs_(runs),
        costs_(costs),
        micro_batches_(micro_batches),
        forward_(runs.size()),
        backward_(runs.size()),
        most_live_(std::size_t(stages)),
        free_(std::size_t(stages)),
        busy_(std::size_t(stages)) {}

  int done(bool backward, int run) const { return int((backward ? backward_ : forward_)[std::size_t(run)].size()); }
  int live(int run) const { return done(false, run) - done(true, run); }
  /// Returns true if a stage still has forwards to run.
  bool goes_forward(int stage) const {
    for (int run = 0; run < int(runs_.size()); ++run)
      if (this->stage(run) == stage && done(false, run) < micro_batches_) return true;
    return false;
  }

  /// Returns the earliest time at which the action may begin; none if its inputs are not ready.
  std::optional<double> ready(const PipelineAction& action) const {
    const auto [backward, run, m] = action;
    const bool is_last = run + 1 == int(runs_.size());
    std::vector<std::optional<double>> needs;
    if (backward) needs.push_back(end_of(false, run, m));
    if (backward && !is_last) needs.push_back(end_of(true, run + 1, m));
    if (!backward && run > 0) needs.push_back(end_of(false, run - 1, m));
    double begin = free_[std::size_t(stage(run))];
    for (const auto& need : needs) {
      if (!need) return std::nullopt;
      begin = std::max(begin, *need);
    }
    return begin;
  }

  void take(const PipelineAction& action, double begin) {
    const auto place = std::size_t(stage(action.run));
    const double duration = costs_[std::size_t(action.run)] * (action.backward ? backward_cost : 1);
    free_[place] = begin + duration;
    busy_[place] += duration;
    (action.backward ? backward_ : forward_)[std::size_t(action.run)].push_back(free_[place]);
    int alive = 0;
    for (int run = 0; run < int(runs_.size()); ++run)
      if (stage(run) == int(place)) alive += live(run);
    most_live_[place] = std::max(most_live_[place], alive);
  }

  bool is_over() const {
    for (const auto& ends : backward_)
      if (int(ends.size()) < micro_batches_) return false;
    return true;
  }
  int stage(int run) const { return runs_[std::size_t(run)].stage; }
  PipelineTimeline timeline() const { return {*std::max_element(free_.begin(), free_.end()), busy_, most_live_}; }

 private:
  std::optional<double> end_of(bool backward, int run, int micro_batch) const {
    const std::vector<double>& ends = (backward ? backward_ : forward_)[std::size_t(run)];
    if (micro_batch >= int(ends.size())) return std::nullopt;
    return ends[std::size_t(micro_batch)];
  }

  const std::vector<UnitRun>& runs_;
  const RunCosts& costs_;
  int micro_batches_;
  std::vector<std::vector<double>> forward_, backward_;  // by run: ends, in the order of micro-batches
  std::vector<int> most_live_;
  std::vector<double> free_, busy_;
};

/// Each stage takes the action that can begin first, and prefers a backward. `limits`: by run, the maximum number of
/// live micro-batches. Empty: all forwards come first, except for the last run, whose backward follows its forward at
/// once.
PipelineSchedule in_turns(const std::vector<UnitRun>& runs, const RunCosts& costs, int stages, int micro_batches,
                          const std::vector<int>& limits) {
  PipelineSchedule schedule{std::vector<std::vector<PipelineAction>>(std::size_t(stages))};
  Progress progress(runs, costs, stages, micro_batches);
  while (!progress.is_over()) {
    // earliest time, then backward first, then the later run
    std::optional<std::tuple<double, bool, int, PipelineAction>> next;
    for (int run = 0; run < int(runs.size()); ++run)
      for (const bool backward : {true, false}) {
        const PipelineAction action{backward, run, progress.done(backward, run)};
        if (action.micro_batch == micro_batches) continue;
        if (limits.empty() ? backward && run + 1 < int(runs.size()) && progress.goes_forward(progress.stage(run))
                           : !backward && progress.live(run) >= limits[std::size_t(run)])
          continue;
        const std::optional<double> begin = progress.ready(action);
        if (!begin) continue;
        if (!next || std::tuple(*begin, !backward, -run) <
                         std::tuple(std::get<0>(*next), std::get<1>(*next), std::get<2>(*next)))
          next.emplace(*begin, !backward, -run, action);
      }
    ZERO_CHECK(next, "a pipeline's stages wait for each other");
    const PipelineAction& action = std::get<3>(*next);
    progress.take(action, std::get<0>(*next));
    schedule.stages[std::size_t(progress.stage(action.run))].push_back(action);
  }
  return schedule;
}

/// The head on the first stage makes micro-batches wait there. More of them alive shorten the wait. Takes the fewest
/// with which a step is at most 1 % longer than with any number up to twice the stages. Steps of many micro-batches
/// take the limits of a shorter step, so that the estimate can plan them by one.
PipelineSchedule in_turns_with_tied_ends(const std::vector<UnitRun>& runs, const RunCosts& costs, int stages,
                                         int micro_batches, const std::vector<int>& limits) {
  const int tried = std::min(micro_batches, pipeline_fill(stages, 1));
  std::vector<std::pair<double, std::vector<int>>> found;  // how long the step takes
  for (int more = 0; more <= 2 * stages; ++more) {
    std::vector<int> raised = limits;
    for (std::size_t run = 0; run + 1 < raised.size(); ++run) raised[run] += more;
    const PipelineSchedule schedule = in_turns(runs, costs, stages, tried, raised);
    found.emplace_back(timeline_of(schedule, runs, costs, tried).end, std::move(raised));
  }
  const double least = std::min_element(found.begin(), found.end())->first;
  const auto chosen =
      std::find_if(found.begin(), found.end(), [&](const auto& one) { return one.first <= 1.01 * least; });
  return in_turns(runs, costs, stages, micro_batches, chosen->second);
}

/// Megatron-LM's order: micro-batches, in groups as large as the number of stages, pass through a stage's first chunk,
/// then the next one.
PipelineSchedule interleave(int runs, int stages, int micro_batches) {
  const int chunks = runs / stages, all = micro_batches * chunks;
  PipelineSchedule schedule;
  for (int stage = 0; stage < stages; ++stage) {
    const auto action = [&](bool backward, int k) -> PipelineAction {
      const int group = k / (stages * chunks), chunk = k % (stages * chunks) / stages;
      return {backward, (backward ? chunks - 1 - chunk : chunk) * stages + stage, group * stages + k % stages};
    };
    const int ahead = std::min(all, 2 * (stages - 1 - stage) + (chunks - 1) * stages);
    std::vector<PipelineAction>& order = schedule.stages.emplace_back();
    for (int k = 0; k < ahead; ++k) order.push_back(action(false, k));
    for (int k = ahead; k < all; ++k) {
      order.push_back(action(false, k));
      order.push_back(action(true, k - ahead));
    }
    for (int k = all - ahead; k < all; ++k) order.push_back(action(true, k));
  }
  return schedule;
}

std::string name_of(const PipelineAction& action) {
  return text(action.backward ? "the backward" : "the forward", " of run ", action.run, " for micro-batch ",
              action.micro_batch);
}

}  // namespace

PipelineSchedule make_schedule(ScheduleKind kind, const std::vector<UnitRun>& runs, const RunCosts& costs, int stages,
                               int micro_batches) {
  const int count = int(runs.size());
  const bool tied = count % stages != 0;
  if (kind == ScheduleKind::interleaved) {
    if (tied)
      throw InputError(
          "\"interleaved\" does not support tied embeddings, because both units are on the first stage: use \"1f1b\"");
    if (micro_batches % stages == 0) return interleave(count, stages, micro_batches);
  }
  if (kind == ScheduleKind::gpipe) return in_turns(runs, costs, stages, micro_batches, {});
  // A micro-batch returns to a stage after it has passed the later runs.
  std::vector<int> limits;
  for (int run = 0; run < count; ++run) limits.push_back(count - run);
  if (!tied) return in_turns(runs, costs, stages, micro_batches, limits);
  return in_turns_with_tied_ends(runs, costs, stages, micro_batches, limits);
}

double PipelineTimeline::bubble() const { return end / *std::max_element(busy.begin(), busy.end()) - 1; }

PipelineTimeline timeline_of(const PipelineSchedule& schedule, const std::vector<UnitRun>& runs, const RunCosts& costs,
                             int micro_batches) {
  Progress progress(runs, costs, int(schedule.stages.size()), micro_batches);
  std::vector<std::size_t> next(schedule.stages.size());
  for (bool moves = true; moves;) {
    moves = false;
    for (std::size_t stage = 0; stage < next.size(); ++stage) {
      const auto& order = schedule.stages[stage];
      for (; next[stage] < order.size(); ++next[stage], moves = true) {
        const PipelineAction& action = order[next[stage]];
        if (action.run < 0 || action.run >= int(runs.size()) || progress.stage(action.run) != int(stage))
          throw Error(text("stage ", stage, " has ", name_of(action), ", which is another's"));
        if (action.micro_batch != progress.done(action.backward, action.run) || action.micro_batch >= micro_batches)
          throw Error(text("stage ", stage, " has ", name_of(action), " out of order"));
        const std::optional<double> begin = progress.ready(action);
        if (!begin) break;
        progress.take(action, *begin);
      }
    }
  }
  for (std::size_t stage = 0; stage < next.size(); ++stage)
    if (next[stage] < schedule.stages[stage].size())
      throw Error(text("stage ", stage, " waits for ever before ", name_of(schedule.stages[stage][next[stage]])));
  if (!progress.is_over()) throw Error("some micro-batches do not pass all runs");
  return progress.timeline();
}

}  // namespace zero
