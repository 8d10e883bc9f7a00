#pragma once
// Linear: every matrix product with a block's weights goes through this one function. It includes the operation before
// the product (a norm, SwiGLU) and after it (the residual). Only the input of the whole is saved for the backward pass,
// which recomputes the intermediate values. That costs one pass over memory and saves an activation. If there is
// memory, they can be kept.
#include <ATen/core/Tensor.h>

#include <vector>

#include "models/nn/activation.h"
#include "models/ops/low_rank.h"
#include "models/parallel/token_split.h"

namespace zero {

/// The way of tokens that the ranks of the tensor axis share through a product. `gathers`: x is this rank's tokens, and
/// the rows under the norm are gathered before the product with this rank's rows of a matrix. Backward gathers them
/// again, unless LinearInput::keep. `scatters`: x is all tokens in this rank's columns, and the products with these
/// columns are summed to this rank's tokens. Bias and residual are added to the sum.
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
  bool keep = false;               // keep the left factor for the backward pass, if that will need it
  TokenFlow flow = TokenFlow::local;
  TokenSplit tokens = {};  // of a flow that is not local
};

/// input W^T (+ the adapters' part) (+ bias) (+ residual): [B, T, out] for weight [out, in], bias [out]; if tokens are
/// scattered [1, own, out]. Only tensors that require gradients get them: a frozen weight costs none. The weight's
/// gradient is written to its GradientPlace if one is open.
at::Tensor linear(const LinearInput& input, const at::Tensor& weight, const at::Tensor& residual = {},
                  const std::vector<LowRank>& adapters = {}, const at::Tensor& bias = {});

/// The same for a norm's input x that also serves later as a residual. It returns x again for that use, whose gradient
/// joins the norm's in one pass. For other kinds of input x is returned as it is.
struct LinearBeside {
  at::Tensor y, x;
};
LinearBeside linear_beside(const LinearInput& input, const at::Tensor& weight,
                           const std::vector<LowRank>& adapters = {}, const at::Tensor& bias = {});

}  // namespace zero
