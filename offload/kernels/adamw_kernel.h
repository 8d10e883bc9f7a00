#pragma once
// One AdamW step over a flat span in host memory, in one pass: decay, gradient scale, moments, update, cast of the
// weights.
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <vector>

namespace zero {

struct AdamWFactors {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
  double gradient_scale = 1.0;  // clip factor / loss scale: gradients are multiplied by it
  std::int64_t step = 1;        // from 1
};

/// n elements; each pointer aligned to its own type, any overlap only by equality.
struct AdamWSpan {
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

/// The rule of torch.optim.AdamW, computed in the states' type:
///   g = gradient * gradient_scale;  p *= 1 - lr*weight_decay;  m += (1-beta1)(g-m);  v = beta2*v + (1-beta2)g*g;
///   p -= lr/(1-beta1^step) * m / (sqrt(v)/sqrt(1-beta2^step) + eps).
/// The same bits for any kind of processor, number of threads and way of cutting a span into pieces.
/// Throws InternalError for a combination of types not listed above.
void adamw_update(const AdamWSpan& span, const AdamWFactors& factors);

/// Elements [begin, end) of a flat shard, with or without weight decay, at a multiple of the step's learning rate.
struct DecayRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool decays = true;
  double lr_scale = 1.0;
};

/// Updates a span that starts at element `offset` of a shard whose parts decay or not. Ranges are ascending and cover
/// the span (InternalError otherwise); no ranges: everything decays.
void adamw_update(const AdamWSpan& span, const AdamWFactors& factors, const std::vector<DecayRange>& ranges,
                  std::int64_t offset);

/// The part of a span from element `begin` to `end`.
AdamWSpan slice(const AdamWSpan& span, std::int64_t begin, std::int64_t end);

}  // namespace zero
