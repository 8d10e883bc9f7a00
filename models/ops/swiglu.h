#pragma once
// SwiGLU (Shazeer 2020): y = silu(gate) * up, computed in fp32 (fp64 for fp64) and rounded once. Under autograd it
// saves only gate_up.
#include <ATen/core/Tensor.h>

namespace zero {

/// gate_up [rows, 2 * inner] contiguous, gate first. Returns [rows, inner].
at::Tensor swiglu(const at::Tensor& gate_up);

/// The gradient of gate_up for dy [rows, inner].
at::Tensor swiglu_backward(const at::Tensor& dy, const at::Tensor& gate_up);

}  // namespace zero
