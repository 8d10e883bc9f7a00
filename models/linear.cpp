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
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& norm_weight, const std::optional<at::Tensor>& residual, Kind kind, double eps) {
    at::Tensor rstd;
    const at::Tensor z = multiplied({kind, as_rows(x), norm_weight.value_or(at::Tensor()), eps}, rstd);
    const at::Tensor y = residual ? at::addmm(as_rows(*residual), z, weight.t()) : at::mm(z, weight.t());
    context->save_for_backward({x, weight, norm_weight.value_or(at::Tensor()), rstd});
    context->saved_data["kind"] = static_cast<std::int64_t>(kind);
    context->saved_data["residual"] = residual.has_value();
    std::vector<std::int64_t> shape = x.sizes().vec();
    shape.back() = weight.size(0);
    return y.view(shape);
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &norm_weight = saved[2];
    at::Tensor rstd = saved[3];
    const LinearInput input{static_cast<Kind>(context->saved_data["kind"].toInt()), as_rows(x), norm_weight, 0};
    const bool normed = input.kind == Kind::rms_norm, has_residual = context->saved_data["residual"].toBool();
    // Arguments that are absent have no edge, so later ones move up.
    const bool want_x = context->needs_input_grad(0), want_weight = context->needs_input_grad(1);
    const bool want_norm_weight = normed && context->needs_input_grad(2);
    const bool want_residual = has_residual && context->needs_input_grad(normed ? 3 : 2);

    const at::Tensor dy = as_rows(grads[0]);
    at::Tensor dx, dweight, dnorm_weight;
    if (want_weight) dweight = at::mm(dy.t(), multiplied(input, rstd));
    if (want_x || want_norm_weight) {
      dx = at::mm(dy, weight);
      if (input.kind == Kind::swiglu) dx = swiglu_backward(dx, input.x);
      if (normed) {
        RmsNormGradients gradients = rms_norm_backward(dx, input.x, norm_weight, rstd, want_norm_weight);
        dx = gradients.x;
        dnorm_weight = gradients.weight;
      }
      dx = dx.view(x.sizes());
    }
    return {dx, dweight, dnorm_weight, want_residual ? grads[0] : at::Tensor(), {}, {}};
  }
};

std::optional<at::Tensor> if_defined(const at::Tensor& t) { return t.defined() ? std::optional(t) : std::nullopt; }

}  // namespace

at::Tensor linear(const LinearInput& input, const at::Tensor& weight, const at::Tensor& residual) {
  return LinearFunction::apply(input.x, weight, if_defined(input.norm_weight), if_defined(residual), input.kind, input.eps);
}

}  // namespace zero
