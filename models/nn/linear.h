#pragma once
// Linear: the one function through which every matrix product with a block's weights goes. What comes before the
// product (a norm, SwiGLU) and after it (adding the residual) belongs to it, so that only the input of the whole is
// saved for the backward pass and what lies between is computed again: it costs one pass over memory, and saves an
// activation. Where there is memory, what lies between can be kept.
#include <ATen/core/Tensor.h>

#include <vector>

#include "models/nn/activation.h"
#include "models/ops/low_rank.h"

namespace zero {

/// What is multiplied: x itself, its RMSNorm, SwiGLU of x = [gate, up], or what another activation makes of x.
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
  at::Tensor x;            // [B, T, in], or [B, T, 2 in] where it is gated
  at::Tensor norm_weight;  // [in], for rms_norm
  double eps = 0;
  ActivationKind activation = {};  // for activated
  bool keep = false;               // what is multiplied stays for the backward pass, where that will need it
};

/// input W^T (+ what the adapters add) (+ bias) (+ residual): [B, T, out] for weight [out, in], bias [out]. Gradients are
/// computed only for tensors that require them: a frozen weight costs none. The weight's is written to its GradientPlace
/// where one is open.
at::Tensor linear(const LinearInput& input, const at::Tensor& weight, const at::Tensor& residual = {},
                  const std::vector<LowRank>& adapters = {}, const at::Tensor& bias = {});

/// The same of a norm's input that is also added further on, a residual: x once more, for that use. The gradient that it
/// brings joins the norm's in one pass. Of other inputs x is the input's own.
struct LinearBeside {
  at::Tensor y, x;
};
LinearBeside linear_beside(const LinearInput& input, const at::Tensor& weight,
                           const std::vector<LowRank>& adapters = {}, const at::Tensor& bias = {});

}  // namespace zero
