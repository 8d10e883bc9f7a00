#pragma once
// Converts LibTorch's ScalarType to Number, and Number to a C++ type.
#include "base/error.h"
#include "base/numbers/half.h"
#include "base/numbers/number.h"

namespace zero {

/// LibTorch's ScalarType as a Number. This is a template because base/ does not include LibTorch. Throws InternalError
/// for a type that no kernel supports.
template <class ScalarType>
Number number_of(ScalarType type) {
  switch (type) {
    case ScalarType::Float:
      return Number::fp32;
    case ScalarType::BFloat16:
      return Number::bf16;
    case ScalarType::Half:
      return Number::fp16;
    case ScalarType::Double:
      return Number::fp64;
    case ScalarType::Int:
      return Number::int32;
    case ScalarType::Long:
      return Number::int64;
    default:
      throw_check_failed(__FILE__, __LINE__, "number type", std::string("no kernel for ") + toString(type));
  }
}

/// Calls f(T{}), where T is the C++ type of a floating Number. Throws InternalError for an integer type.
template <class F>
auto with_float_type(Number number, const F& f) {
  switch (number) {
    case Number::fp32:
      return f(float{});
    case Number::bf16:
      return f(Bf16{});
    case Number::fp16:
      return f(Fp16{});
    case Number::fp64:
      return f(double{});
    default:
      throw_check_failed(__FILE__, __LINE__, "floating type", "integers have no floating type");
  }
}

}  // namespace zero
