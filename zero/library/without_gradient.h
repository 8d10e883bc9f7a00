#pragma once
#include <ATen/core/Tensor.h>

namespace zero {

/// Returns the result of `call` on `value`, without a gradient. If the value has a graph, backward through the result
/// throws InputError; otherwise that part of the loss would silently be a constant.
at::Tensor without_gradient(const at::Tensor& result, const at::Tensor& value, const char* call);

}  // namespace zero
