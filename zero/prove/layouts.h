#pragma once
// Layouts: variants of one configuration whose results must agree. They differ in ranks, stages, micro-batches, places
// of states, recomputation or a stop halfway. Each layout differs from some other layout in only a few settings, so
// that a difference points to its cause.
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
  int tensor = 1, context = 1, pipeline = 1;  // ranks of these axes of the mesh
  std::int64_t local_batch_size = 1;
  std::int64_t micro_batch_rows = 1;  // as configured, unless job.reproducible sets its own number
  std::string precision;              // training.precision
  std::string products = "highest";   // training.matmul_precision
  std::vector<std::string> others;    // more "section.key=value"
  std::string same_as;                // layout with the same results bit for bit; empty: sums have another order
  std::string begins_as;      // the layout that trains the first half and stops; empty: this one trains all steps
  bool more_threads = false;  // one thread more per rank than in the other layouts
  bool is_probe = false;      // measures rounding only; not compared

  /// The precision of products: "bf16", "fp32", or for example "fp32 medium".
  std::string arithmetic() const { return products == "highest" ? precision : precision + " " + products; }
  /// For example "2 ranks, stage 3, 4 x 1 rows".
  std::string describe(std::int64_t global_batch_size) const;
  /// The overrides for zero_train.
  std::vector<std::string> overrides(std::int64_t global_batch_size) const;
};

struct LayoutLimits {
  int ranks = 4;      // at most
  bool full = false;  // several layouts for each variation instead of one
};

/// Returns the number of sequences in a step: as configured, or the default for two ranks.
std::int64_t global_batch_of(const Config& config);

/// The list starts with the reference: one rank, stage 0, no offload, no recomputation. Next is the same layout in
/// another precision, to measure rounding. Throws InputError for a configuration without variants.
std::vector<Layout> layouts_of(const Config& config, const LayoutLimits& limits);

/// Selects layouts by number, which counts from 1 ("layout 3"), or by name. Includes the layouts that they depend on,
/// in order. Throws InputError.
std::vector<Layout> chosen(const std::vector<Layout>& all, const std::vector<std::string>& wanted);

}  // namespace zero
