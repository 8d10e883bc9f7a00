#include "models/rms_norm.h"

#include <ATen/ATen.h>

#include "models/precise_type.h"

namespace zero {

namespace {
at::Tensor normalized(const at::Tensor& x, const at::Tensor& rstd) { return x.to(rstd.scalar_type()) * rstd.unsqueeze(1); }
}  // namespace

RmsNormed rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const at::Tensor x_precise = x.to(precise_type(x.scalar_type()));
  const at::Tensor rstd = x_precise.square().mean(1).add_(eps).rsqrt_();
  return {rms_norm_again(x, weight, rstd), rstd};
}

at::Tensor rms_norm_again(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& rstd) {
  return (normalized(x, rstd) * weight.to(rstd.scalar_type())).to(x.scalar_type());
}

// With n = x * rstd and g = dy * weight: dx = rstd * (g - n * mean(g * n)), dweight = sum over rows of dy * n.
RmsNormGradients rms_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& rstd,
                                   bool want_weight) {
  RmsNormGradients gradients;
  const at::Tensor dy_precise = dy.to(rstd.scalar_type());
  const at::Tensor n = normalized(x, rstd);
  const at::Tensor g = dy_precise * weight.to(rstd.scalar_type());
  gradients.x = ((g - n * (g * n).mean(1, true)) * rstd.unsqueeze(1)).to(x.scalar_type());
  if (want_weight) gradients.weight = (dy_precise * n).sum(0).to(weight.scalar_type());
  return gradients;
}

}  // namespace zero
