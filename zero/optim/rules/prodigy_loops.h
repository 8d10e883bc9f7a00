#pragma once
// Prodigy's passes over elements in host memory, vectorized, for fp32 masters and states.
#include "zero/optim/kernels/update_span.h"

namespace zero {

/// The factors of pass 0. The gradient times `to_m` is added to exp_avg, times `to_s` to s. Its square times `to_v` is
/// added to exp_avg_sq.
struct ProdigyFactors {
  double gradient_scale, beta1, beta2, beta3, to_m, to_v, to_s;
};

/// The factors of pass 1: master = keep * master - step * exp_avg / (sqrt(exp_avg_sq) + eps).
struct ProdigyStep {
  double keep, step, eps;
};

/// Sums over elements: of (p0 - master) * gradient, and of the new |s|.
struct ProdigySums {
  double along = 0, size = 0;
};

/// The loops give the same bits for any number of threads and any kind of processor. States are in the order of the
/// rule: exp_avg, exp_avg_sq, s, p0.
struct ProdigyLoops {
  ProdigySums (*take_in)(const UpdateSpan& span, const ProdigyFactors& factors);
  /// Writes the weights too.
  void (*take_step)(const UpdateSpan& span, const ProdigyStep& step);
};

/// Null if there are none for the types of the span.
const ProdigyLoops* prodigy_loops(const UpdateSpan& span);

}  // namespace zero
