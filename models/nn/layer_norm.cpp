#include "models/nn/layer_norm.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/undivided.h"

namespace zero {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct LayerNormFunction : torch::autograd::Function<LayerNormFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, double eps) {
    const Undivided sums;
    const at::ScalarType precise = at::toOpMathType(x.scalar_type());
    const at::Tensor rows = x.reshape({-1, x.size(-1)}).to(precise);
    const at::Tensor mean = rows.mean(1, true), centred = rows - mean;
    const at::Tensor rstd = centred.square().mean(1, true).add_(eps).rsqrt_();
    context->save_for_backward({x, weight, mean, rstd});
    return centred.mul(rstd).mul_(weight).add_(bias).to(x.scalar_type()).view(x.sizes());
  }

  // With n = (x - mean) rstd and g = dy weight: dx = rstd (g - mean(g) - n mean(g n)), dweight = sum of dy n over rows.
  static variable_list backward(AutogradContext* context, variable_list grads) {
    const Undivided sums;
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &rstd = saved[3];
    const at::ScalarType precise = rstd.scalar_type();
    const at::Tensor dy = grads[0].reshape({-1, x.size(-1)}).to(precise);
    const at::Tensor n = x.reshape({-1, x.size(-1)}).to(precise).sub(saved[2]).mul_(rstd), g = dy * weight;
    variable_list found(4);
    if (context->needs_input_grad(0)) {
      const at::Tensor dx = (g - g.mean(1, true)).sub_(n * (g * n).mean(1, true)).mul_(rstd);
      found[0] = dx.to(x.scalar_type()).view(x.sizes());
    }
    if (context->needs_input_grad(1)) found[1] = (dy * n).sum(0).to(weight.scalar_type());
    if (context->needs_input_grad(2)) found[2] = dy.sum(0).to(weight.scalar_type());
    return found;
  }
};

}  // namespace

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps) {
  return LayerNormFunction::apply(x, weight, bias, eps);
}

}  // namespace zero
