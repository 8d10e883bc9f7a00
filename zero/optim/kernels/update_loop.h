#pragma once
// The loops that a rule's file of kernels (update_lanes.inl) defines, and the walk over a span that calls them.
#include <array>
#include <cstdint>
#include <optional>

#include "base/numbers/number.h"
#include "zero/optim/kernels/optimizer_kernel.h"

namespace zero {

template <class State>
struct UpdatePointers {
  State* master;
  std::array<State*, 4> states;
  const void* gradient;
  void* weights;
};

/// Updates n elements. `stream`: weights that are 64-byte aligned are written past the caches.
template <class State>
using UpdateLoop = void (*)(const UpdatePointers<State>&, const StepFactors&, std::int64_t n, bool stream);

/// The loops for states in fp32 and in fp64. Null for an unsupported combination of types.
struct UpdateLoops {
  UpdateLoop<float> fp32;
  UpdateLoop<double> fp64;
};
/// Chooses the best loops of this machine. Without a type of weights none are written.
using ChooseLoops = UpdateLoops (*)(Number gradient, std::optional<Number> weights);

/// Runs the loop for the span's types over it, on all threads. The bits do not depend on the kind of processor, the
/// number of threads or the cut of a span into chunks. Throws InternalError for a combination of types that
/// OptimizerSpan does not list.
void run_update(const OptimizerSpan& span, const StepFactors& factors, ChooseLoops choose);

}  // namespace zero
