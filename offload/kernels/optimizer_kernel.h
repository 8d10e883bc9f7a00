#pragma once
// What every optimizer's kernel has in common: one step over a flat span in host memory, in one pass.
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <vector>

namespace zero {

/// n elements; each pointer aligned to its own type, any overlap only by equality.
struct OptimizerSpan {
  void* master = nullptr;
  void* m = nullptr;
  void* v = nullptr;
  c10::ScalarType state_type = c10::kFloat;  // of master, m and v: kFloat or kDouble
  const void* gradient = nullptr;
  c10::ScalarType gradient_type = c10::kFloat;  // kFloat, kBFloat16, kHalf; kDouble with states in kDouble
  void* weights = nullptr;  // receives the new master rounded to nearest even; nullptr: the master is the weights
  c10::ScalarType weight_type = c10::kFloat;  // kFloat, kBFloat16, kHalf; kDouble with states in kDouble
  std::int64_t n = 0;
};

struct StepFactors;
/// Updates a span. The same bits for any kind of processor, number of threads and way of cutting a span into chunks.
/// Throws InternalError for a combination of types not listed above.
using OptimizerKernel = void (*)(const OptimizerSpan& span, const StepFactors& factors);

/// Of one step. A kernel reads those that its rule knows.
struct StepFactors {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
  double gradient_scale = 1.0;  // clip factor / loss scale: gradients are multiplied by it
  std::int64_t step = 1;        // from 1
  OptimizerKernel kernel = nullptr;
};

/// Elements [begin, end) of a flat shard, with or without weight decay, at a multiple of the step's learning rate.
struct DecayRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool decays = true;
  double lr_scale = 1.0;
};

/// Runs the factors' kernel over a span that starts at element `offset` of a shard whose parts decay or not. Ranges are
/// ascending and cover the span (InternalError otherwise); no ranges: everything decays.
void update_ranges(const OptimizerSpan& span, const StepFactors& factors, const std::vector<DecayRange>& ranges,
                   std::int64_t offset);

/// The part of a span from element `begin` to `end`.
OptimizerSpan slice(const OptimizerSpan& span, std::int64_t begin, std::int64_t end);

}  // namespace zero
