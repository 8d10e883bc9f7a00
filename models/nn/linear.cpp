#include "models/nn/linear.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include "models/gradient_place.h"
#include "models/ops/matrix_product.h"
#include "models/ops/rms_norm.h"
#include "models/ops/swiglu.h"
#include "models/undivided.h"

namespace zero {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Kind = LinearInput::Kind;

at::Tensor as_rows(const at::Tensor& x) { return x.reshape({-1, x.size(-1)}).contiguous(); }

at::Tensor sum_of_rows(const at::Tensor& rows) {
  const Undivided sum;
  return rows.sum(0);
}

/// The multiplied rows; `rstd` is filled by a norm's first call and used by its second.
at::Tensor multiplied(const LinearInput& input, at::Tensor& rstd) {
  if (input.kind == Kind::plain) return input.x;
  if (input.kind == Kind::swiglu) return swiglu(input.x);
  if (input.kind == Kind::activated) return activate(input.x, input.activation);
  if (rstd.defined()) return rms_norm_again(input.x, input.norm_weight, rstd);
  RmsNormed normed = rms_norm(input.x, input.norm_weight, input.eps);
  rstd = normed.rstd;
  return normed.y;
}

/// The rows of all tokens before the product.
at::Tensor left_factor(const LinearInput& input, at::Tensor& rstd) {
  const at::Tensor z = multiplied(input, rstd);
  return input.flow == TokenFlow::gathers ? input.tokens.gather(z) : z;
}

/// The shape of the result for x of the input's shape.
std::vector<std::int64_t> result_shape(const LinearInput& input, const at::Tensor& x, std::int64_t width) {
  if (input.flow == TokenFlow::gathers) return input.tokens.part_shape(width);
  if (input.flow == TokenFlow::scatters) return {1, input.tokens.own(), width};
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = width;
  return shape;
}

/// The product's settings that are not autograd tensors.
struct LinearTerms {
  const LinearInput& input;
  const std::vector<LowRank>& adapters;
  bool beside = false;  // x is a result too
};

// The adapters' tensors are arguments of the function. Their settings are passed separately.
constexpr int tensors_per_adapter = 3;

variable_list tensors_of(const std::vector<LowRank>& adapters) {
  variable_list tensors;
  for (const LowRank& adapter : adapters) {
    tensors.push_back(adapter.a);
    tensors.push_back(adapter.b);
    // A list holds no absent tensors: an empty one stands for no magnitude.
    tensors.push_back(adapter.magnitude.defined() ? adapter.magnitude : at::empty({0}, adapter.a.options()));
  }
  return tensors;
}

/// The terms without tensors, for the backward pass.
struct SavedTerms : torch::CustomClassHolder {
  LinearInput input;
  std::vector<LowRank> adapters;

  static c10::IValue of(const LinearTerms& terms) {
    auto saved = c10::make_intrusive<SavedTerms>();
    saved->input = terms.input;
    saved->input.x = saved->input.norm_weight = at::Tensor();
    saved->adapters = terms.adapters;
    for (LowRank& adapter : saved->adapters) adapter.a = adapter.b = adapter.magnitude = at::Tensor();
    return c10::IValue::make_capsule(std::move(saved));
  }
  static c10::intrusive_ptr<SavedTerms> from(const c10::IValue& value) {
    return c10::static_intrusive_pointer_cast<SavedTerms>(value.toCapsule());
  }
  std::vector<LowRank> adapters_with(const at::Tensor* tensors) const {
    std::vector<LowRank> all = adapters;
    for (LowRank& adapter : all) {
      adapter.a = *tensors++;
      adapter.b = *tensors++;
      const at::Tensor& magnitude = *tensors++;
      if (magnitude.numel() > 0) adapter.magnitude = magnitude;
    }
    return all;
  }
};

/// dy^T z, as gradient_of() returns it.
at::Tensor weight_gradient(const at::Tensor& weight, const at::Tensor& dy, const at::Tensor& z) {
  return gradient_of(weight, [&](at::Tensor& sum, bool adds) { matrix_product_into(sum, dy.t(), z, adds); });
}

/// The rows of the result for the left factor z.
at::Tensor result(const LinearInput& input, const at::Tensor& z, const at::Tensor& weight,
                  const std::vector<LowRank>& adapters, const std::optional<at::Tensor>& residual,
                  const std::optional<at::Tensor>& bias) {
  const bool scatters = input.flow == TokenFlow::scatters;
  const bool joined = adapters.empty() && !scatters;  // the product adds bias and residual itself
  const at::Tensor added = residual ? as_rows(*residual) : at::Tensor(), none;
  at::Tensor y = matrix_product(z, weight.t(), joined ? added : none, joined && bias ? *bias : none);
  for (const LowRank& adapter : adapters) add_low_rank(adapter, z, weight, y);
  if (scatters) y = input.tokens.sum(y);
  if (bias && !joined) y.add_(*bias);
  if (residual && !joined) y.add_(added);
  return y;
}

class LinearFunction : public torch::autograd::Function<LinearFunction> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                               at::TensorList adapter_tensors, const std::optional<at::Tensor>& norm_weight,
                               const std::optional<at::Tensor>& residual, const std::optional<at::Tensor>& bias,
                               const LinearTerms& terms) {
    LinearInput input = terms.input;
    input.x = as_rows(x);
    const std::vector<LowRank>& adapters = terms.adapters;
    at::Tensor rstd, z;
    const bool needs_z = weight.requires_grad() || !adapters.empty();
    const bool keep = input.keep && needs_z && (input.kind != Kind::plain || input.flow == TokenFlow::gathers);
    if (!input.unread || keep || input.kind == Kind::rms_norm) z = left_factor(input, rstd);
    const std::vector<std::int64_t> shape = result_shape(input, x, weight.size(0));
    const at::Tensor y =
        input.unread ? at::empty(shape, x.options()) : result(input, z, weight, adapters, residual, bias);
    variable_list saved{x, weight, norm_weight.value_or(at::Tensor()), rstd, keep ? z : at::Tensor()};
    saved.insert(saved.end(), adapter_tensors.begin(), adapter_tensors.end());
    context->save_for_backward(std::move(saved));
    context->saved_data["terms"] = SavedTerms::of(terms);
    context->saved_data["residual"] = residual.has_value();
    context->saved_data["bias"] = bias.has_value();
    // not a view, because attention writes to it
    variable_list results{at::_unsafe_view(y, shape)};
    if (terms.beside) results.push_back(x.detach());
    return results;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &norm_weight = saved[2];
    at::Tensor rstd = saved[3];
    const auto terms = SavedTerms::from(context->saved_data["terms"]);
    const std::vector<LowRank> adapters = terms->adapters_with(saved.data() + 5);
    LinearInput input = terms->input;
    input.x = as_rows(x);
    input.norm_weight = norm_weight;
    const bool normed = input.kind == Kind::rms_norm, has_residual = context->saved_data["residual"].toBool(),
               has_bias = context->saved_data["bias"].toBool();
    // Absent arguments have no autograd edge, so the indices of later ones shift.
    const std::size_t after_adapters = 2 + adapters.size() * tensors_per_adapter;
    const bool want_x = context->needs_input_grad(0), want_weight = context->needs_input_grad(1);
    const bool want_norm_weight = normed && context->needs_input_grad(after_adapters);
    const bool want_residual = has_residual && context->needs_input_grad(after_adapters + (normed ? 1 : 0));
    const std::size_t at_bias = after_adapters + (normed ? 1 : 0) + (has_residual ? 1 : 0);
    const bool want_z = want_x || want_norm_weight;

    at::Tensor dy = as_rows(grads[0]), z, dz, dnorm_weight, dbias;
    if (has_bias && context->needs_input_grad(at_bias)) dbias = sum_of_rows(dy);
    if (input.flow == TokenFlow::scatters) dy = input.tokens.gather(dy);
    if (want_weight || !adapters.empty()) z = saved[4].defined() ? saved[4] : left_factor(input, rstd);
    variable_list found{{}, {}};
    if (!adapters.empty()) {
      for (const LowRank& adapter : adapters)
        if (adapter.magnitude.defined()) dy = dy.clone();  // it is rescaled, and the residual's gradient must not be
      if (want_z) dz = at::zeros_like(z);
      for (const LowRank& adapter : adapters) {
        LowRankGradients gradients = low_rank_backward(adapter, z, weight, dy, dz);
        found.push_back(gradients.a);
        found.push_back(gradients.b);
        found.push_back(gradients.magnitude);
      }
    }
    if (want_weight) found[1] = weight_gradient(weight, dy, z);
    if (want_z) {
      if (dz.defined())
        matrix_product_into(dz, dy, weight, true);
      else
        dz = matrix_product(dy, weight);
      if (input.flow == TokenFlow::gathers) dz = input.tokens.sum(dz);
      if (input.kind == Kind::swiglu) dz = swiglu_backward(dz, input.x);
      if (input.kind == Kind::activated) dz = activate_backward(dz, input.x, input.activation);
      if (normed) {
        const at::Tensor beside = grads.size() > 1 ? as_rows(grads[1]) : at::Tensor();
        RmsNormGradients gradients = rms_norm_backward(dz, input.x, norm_weight, rstd, want_norm_weight, beside);
        dz = gradients.x;
        dnorm_weight = gradients.weight;
      }
      found[0] = dz.view(x.sizes());
    }
    found.push_back(dnorm_weight);
    found.push_back(want_residual ? grads[0] : at::Tensor());
    found.push_back(dbias);
    found.emplace_back();
    return found;
  }
};

std::optional<at::Tensor> if_defined(const at::Tensor& t) { return t.defined() ? std::optional(t) : std::nullopt; }

variable_list apply(const LinearTerms& terms, const at::Tensor& weight, const at::Tensor& residual,
                    const at::Tensor& bias) {
  const variable_list tensors = tensors_of(terms.adapters);
  return LinearFunction::apply(terms.input.x, weight, at::TensorList(tensors), if_defined(terms.input.norm_weight),
                               if_defined(residual), if_defined(bias), terms);
}

}  // namespace

at::Tensor linear(const LinearInput& input, const at::Tensor& weight, const at::Tensor& residual,
                  const std::vector<LowRank>& adapters, const at::Tensor& bias) {
  return apply({input, adapters}, weight, residual, bias)[0];
}

LinearBeside linear_beside(const LinearInput& input, const at::Tensor& weight, const std::vector<LowRank>& adapters,
                           const at::Tensor& bias) {
  const bool beside = input.kind == Kind::rms_norm && input.x.requires_grad();
  const variable_list found = apply({input, adapters, beside}, weight, {}, bias);
  return {found[0], beside ? found[1] : input.x};
}

}  // namespace zero
