#pragma once
// Binding: finds the activity that limits a run's steps, and a setting that would help.
#include <array>
#include <string>

#include "base/activity_clock.h"
#include "zero/config/config.h"

namespace zero {

/// Means over a run's steps and ranks.
struct StepFigures {
  std::array<double, activities> seconds{};  // of a step
  double link_rate = 0, best_link_rate = 0;  // bytes per second of gathers and sums, and of the fastest large one
  int slowest_rank = 0;                      // the rank that waits least for others
  double slowest_busy = 0;                   // its seconds without that waiting
  int ranks = 1;
  int ranks_per_node = 1;
  std::int64_t micro_batches = 1;  // of a rank's step

  double of(Activity activity) const { return seconds[std::size_t(activity)]; }
  double step() const;
};

/// A rule: if `by` limits a step and holds() is true, remedy() says which setting would help.
struct BindingRule {
  Activity by;
  bool (*holds)(const StepFigures& figures, const Config& config);
  std::string (*remedy)(const StepFigures& figures, const Config& config);
};

/// The activity with the largest part. Gathers and sums use the same link, so they count together, as the larger one.
Activity binding_of(const StepFigures& figures);

/// The remedy of the first rule that holds.
std::string remedy_of(const StepFigures& figures, const Config& config);

/// "bound by the link, 43 % of a step of 1.87 s at 9.8 of 10.1 GB/s: zero.shard_degree = 2 would ...".
std::string what_binds(const StepFigures& figures, const Config& config);

}  // namespace zero
