#pragma once
// Layouts: the ways in which one configuration is run to see that they agree: ranks, stages, micro-batches, places of
// states, recomputation, a stop in the middle. Each differs from another one in few things, so that a difference has a
// name.
#include <optional>
#include <string>
#include <vector>

#include "zero/config/config.h"

namespace zero {

struct Layout {
  std::string name;
  int ranks = 1;
  std::int64_t stage = 0;
  std::int64_t shard_degree = 0;
  std::int64_t local_batch_size = 1;
  std::int64_t micro_batch_rows = 1;  // the same, but where job.reproducible has a number of its own
  std::string precision;
  std::vector<std::string> others;  // more "section.key=value"
  std::string same_as;  // the layout whose bits this one must have; empty: those of none, being added in other orders
  std::string
      begins_as;  // the layout that trains the first half of the steps, and is stopped; empty: this one, unstopped
  bool more_threads = false;  // of each rank one more than in the other layouts
  bool is_probe = false;      // run for what rounding does, and compared with nothing

  /// "2 ranks, stage 3, 4 x 1 rows".
  std::string describe(std::int64_t global_batch_size) const;
  /// With which zero_train runs it.
  std::vector<std::string> overrides(std::int64_t global_batch_size) const;
};

struct LayoutLimits {
  int ranks = 4;      // at most
  bool full = false;  // more layouts than those that vary each thing once
};

/// Sequences of a step: the configuration's, or what it is with two ranks.
std::int64_t global_batch_of(const Config& config);

/// The reference first: one rank, stage 0, nothing offloaded or computed again; then the same in another precision,
/// which tells what rounding does. Throws InputError for a configuration without anything to vary.
std::vector<Layout> layouts_of(const Config& config, const LayoutLimits& limits);

/// "layout 3" by its number from 1 or by its name, those it leans on with it, in their order. Throws InputError.
std::vector<Layout> chosen(const std::vector<Layout>& all, const std::vector<std::string>& wanted);

}  // namespace zero
