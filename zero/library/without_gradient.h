#pragma once
#include <ATen/core/Tensor.h>

namespace zero {

/// Returns `result`, which `call` computed from `value`, without a gradient. If `value` has a graph, backward through
/// the result throws InputError. Otherwise that part of the loss would silently be a constant.
at::Tensor without_gradient(const at::Tensor& result, const at::Tensor& value, const char* call);

}  // namespace zero
