#pragma once
#include <ATen/core/Tensor.h>

namespace zero {

/// The result of `call` on `value`: where a graph leads to the value, a backward through the result throws InputError,
/// since the part of a loss that it is would be trained as a constant, in silence.
at::Tensor without_gradient(const at::Tensor& result, const at::Tensor& value, const char* call);

}  // namespace zero
