#pragma once
// AdamW's inner loop, compiled once for each kind of processor. Plain pointers, no LibTorch.
#include <cstdint>
#include <optional>

#include "base/numbers/number.h"

namespace zero {

/// The constants of a step in the states' type.
template <class State>
struct AdamWConstants {
  State gradient_scale, keep, one_minus_beta1, beta2, one_minus_beta2, step_size, inverse_root_bias2, eps;
};

template <class State>
struct AdamWPointers {
  State* master;
  State* m;
  State* v;
  const void* gradient;
  void* weights;
};

/// Updates n elements. `stream`: weights that lie on 64 bytes are written past the caches.
template <class State>
using AdamWLoop = void (*)(const AdamWPointers<State>&, const AdamWConstants<State>&, std::int64_t n, bool stream);

/// The best loop of this machine; without a type of weights none are written. Null for a combination that is not there.
template <class State>
AdamWLoop<State> adamw_loop(Number gradient, std::optional<Number> weights);

}  // namespace zero
