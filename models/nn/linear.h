#pragma once
// Linear: every matrix product with a block's weights goes through this one function. The function includes the
// operation before the product (a norm, SwiGLU) and the one after it (adding the residual). Only the input of the first
// operation is saved for the backward pass, which recomputes intermediate values. That costs one pass over memory and
// saves an activation. If memory allows, they can be kept instead (LinearInput::keep).
#include <ATen/core/Tensor.h>

#include <vector>

#include "models/nn/activation.h"
#include "models/ops/low_rank.h"
#include "models/parallel/token_split.h"

namespace zero {

/// How tokens flow through a product if ranks of the tensor axis share them. `gathers`: x holds this rank's tokens.
/// After the norm they are gathered and multiplied with this rank's rows of the matrix. Backward gathers them again,
/// unless LinearInput::keep is set. `scatters`: x holds this rank's columns of all tokens. The products are
/// reduce-scattered to this rank's tokens, and bias and residual are added to the sum.
enum class TokenFlow : std::uint8_t { local, gathers, scatters };

/// The left factor: x itself, its RMSNorm, SwiGLU of x = [gate, up], or another activation of x.
struct LinearInput {
  enum class Kind : int { plain, rms_norm, swiglu, activated };

  static LinearInput plain(at::Tensor x) { return {Kind::plain, std::move(x), {}, 0}; }
  static LinearInput rms_norm(at::Tensor x, at::Tensor weight, double eps) {
    return {Kind::rms_norm, std::move(x), std::move(weight), eps};
  }
  static LinearInput swiglu(at::Tensor gate_up) { return {Kind::swiglu, std::move(gate_up), {}, 0}; }
  static LinearInput activated(at::Tensor x, const ActivationKind& how) {
    if (how.gated && how.function == Activation::silu) return swiglu(std::move(x));
    return {Kind::activated, std::move(x), {}, 0, how};
  }

  Kind kind = Kind::plain;
  at::Tensor x;            // [B, T, in], or [B, T, 2 in] if gated
  at::Tensor norm_weight;  // [in], for rms_norm
  double eps = 0;
  ActivationKind activation = {};  // for activated
  bool keep = false;               // keep the left factor for the backward pass if it will be needed
  bool unread = false;             // only gradients are wanted: the result has its shape, but no values
  TokenFlow flow = TokenFlow::local;
  TokenSplit tokens = {};  // used if the flow is not local
};

/// Returns input W^T (+ the adapters' output) (+ bias) (+ residual) for weight [out, in] and bias [out]. The result is
/// [B, T, out], or [1, own, out] if tokens are scattered. Gradients are computed only for tensors that require them.
/// The weight's gradient is written to its GradientPlace if one is open.
at::Tensor linear(const LinearInput& input, const at::Tensor& weight, const at::Tensor& residual = {},
                  const std::vector<LowRank>& adapters = {}, const at::Tensor& bias = {});

/// The same for a norm's input x that later also serves as a residual. Returns x for that use, so that backward adds
/// its gradient to the norm's in one pass. For other kinds of input, x is returned unchanged.
struct LinearBeside {
  at::Tensor y, x;
};
LinearBeside linear_beside(const LinearInput& input, const at::Tensor& weight,
                           const std::vector<LowRank>& adapters = {}, const at::Tensor& bias = {});

}  // namespace zero
