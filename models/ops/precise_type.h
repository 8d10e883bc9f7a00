#pragma once
// The type in which norms, angles, softmax and losses are computed inside.
#include <c10/core/ScalarType.h>

namespace zero {

/// fp64 for fp64, fp32 for every other type.
inline at::ScalarType precise_type(at::ScalarType type) { return type == at::kDouble ? at::kDouble : at::kFloat; }

}  // namespace zero
