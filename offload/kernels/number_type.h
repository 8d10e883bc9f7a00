#pragma once
// LibTorch's floating types as the kernels name them.
#include <c10/core/ScalarType.h>

#include "base/error.h"
#include "offload/kernels/lanes_scalar.h"

namespace zero {

/// Throws InternalError for a type that is no floating type of the kernels.
inline kernels::Number number_type(c10::ScalarType type) {
  switch (type) {
    case c10::kFloat:
      return kernels::Number::f32;
    case c10::kBFloat16:
      return kernels::Number::bf16;
    case c10::kHalf:
      return kernels::Number::f16;
    case c10::kDouble:
      return kernels::Number::f64;
    default:
      throw_check_failed(__FILE__, __LINE__, "floating type", std::string("no kernel for ") + c10::toString(type));
  }
}

}  // namespace zero
