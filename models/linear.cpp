#include "models/linear.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/rms_norm.h"
#include "models/swiglu.h"

namespace zero {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Kind = LinearInput::Kind;

at::Tensor as_rows(const at::Tensor& x) { return x.reshape({-1, x.size(-1)}).contiguous(); }

/// The multiplied rows; `rstd` is filled by a norm's first call and used by its second.
at::Tensor multiplied(const LinearInput& input, at::Tensor& rstd) {
  if (input.kind == Kind::plain) return input.x;
  if (input.kind == Kind::swiglu) return swiglu(input.x);
  if (rstd.defined()) return rms_norm_again(input.x, input.norm_weight, rstd);
  RmsNormed normed = rms_norm(input.x, input.norm_weight, input.eps);
  rstd = normed.rstd;
  return normed.y;
}

class LinearFunction : public torch::autograd::Function<LinearFunction> {
 public:
  enum Argument { x_, norm_weight_, weight_, residual_ };

  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& norm_weight, const at::Tensor& weight,
                            const at::Tensor& residual, std::int64_t kind, double eps) {
    at::Tensor rstd;
    const at::Tensor z = multiplied({static_cast<Kind>(kind), as_rows(x), norm_weight, eps}, rstd);
    const at::Tensor y = residual.defined() ? at::addmm(as_rows(residual), z, weight.t()) : at::mm(z, weight.t());
    context->save_for_backward({x, norm_weight, weight, rstd});
    context->saved_data["kind"] = kind;
    std::vector<std::int64_t> shape = x.sizes().vec();
    shape.back() = weight.size(0);
    return y.view(shape);
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &norm_weight = saved[1], &weight = saved[2];
    at::Tensor rstd = saved[3];
    const LinearInput input{static_cast<Kind>(context->saved_data["kind"].toInt()), as_rows(x), norm_weight, 0};
    const at::Tensor dy = as_rows(grads[0]);

    at::Tensor dx, dnorm_weight, dweight;
    if (context->needs_input_grad(weight_)) dweight = at::mm(dy.t(), multiplied(input, rstd));
    const bool want_norm_weight = input.kind == Kind::rms_norm && context->needs_input_grad(norm_weight_);
    if (context->needs_input_grad(x_) || want_norm_weight) {
      dx = at::mm(dy, weight);
      if (input.kind == Kind::swiglu) dx = swiglu_backward(dx, input.x);
      if (input.kind == Kind::rms_norm) {
        RmsNormGradients gradients = rms_norm_backward(dx, input.x, norm_weight, rstd, want_norm_weight);
        dx = gradients.x;
        dnorm_weight = gradients.weight;
      }
      dx = dx.view(x.sizes());
    }
    return {dx, dnorm_weight, dweight, context->needs_input_grad(residual_) ? grads[0] : at::Tensor(), {}, {}};
  }
};

}  // namespace

at::Tensor linear(const LinearInput& input, const at::Tensor& weight, const at::Tensor& residual) {
  return LinearFunction::apply(input.x, input.norm_weight, weight, residual, static_cast<std::int64_t>(input.kind), input.eps);
}

}  // namespace zero
