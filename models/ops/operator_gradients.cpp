#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/library.h>

#include "models/ops/checks.h"
#include "models/ops/cross_entropy.h"
#include "models/ops/head_rows.h"
#include "models/ops/matrix_product.h"
#include "models/ops/rms_norm.h"
#include "models/ops/swiglu.h"

namespace zero {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Below = at::AutoDispatchBelowADInplaceOrView;

struct RmsNormFunction : torch::autograd::Function<RmsNormFunction> {
  static variable_list forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight, double eps) {
    const RmsNormed normed = rms_norm(x, weight, eps);
    context->save_for_backward({x, weight, normed.rstd});
    context->mark_non_differentiable({normed.rstd});
    return {normed.y, normed.rstd};
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const variable_list saved = context->get_saved_variables();
    const RmsNormGradients gradients =
        rms_norm_backward(grads[0].contiguous(), saved[0], saved[1], saved[2], context->needs_input_grad(1));
    return {gradients.x, gradients.weight, {}};
  }
};

struct SwigluFunction : torch::autograd::Function<SwigluFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate_up) {
    context->save_for_backward({gate_up});
    return swiglu(gate_up);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    return {swiglu_backward(grads[0].contiguous(), context->get_saved_variables()[0])};
  }
};

struct CrossEntropyFunction : torch::autograd::Function<CrossEntropyFunction> {
  static variable_list forward(AutogradContext* context, const at::Tensor& logits, const at::Tensor& targets) {
    const CrossEntropy found = cross_entropy(logits, targets);
    context->save_for_backward({logits, targets, found.lse});
    context->mark_non_differentiable({found.lse});
    return {found.loss, found.lse};
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    refuse_second_derivative("zero::cross_entropy");
    const variable_list saved = context->get_saved_variables();
    at::Tensor gradient = saved[0].detach().clone();
    cross_entropy_backward_(gradient, saved[1], saved[2], grads[0]);
    return {gradient, {}};
  }
};

TensorPair rms_norm_recorded(const at::Tensor& x, const at::Tensor& weight, double eps) {
  if (torch::autograd::compute_requires_grad(x, weight)) {
    check::rms_norm(x, weight, eps);  // before autograd inspects them
    const variable_list found = RmsNormFunction::apply(x, weight, eps);
    return {found[0], found[1]};
  }
  const Below below;
  const RmsNormed normed = rms_norm(x, weight, eps);
  return {normed.y, normed.rstd};
}

at::Tensor swiglu_recorded(const at::Tensor& gate_up) {
  if (torch::autograd::compute_requires_grad(gate_up)) {
    check::swiglu(gate_up);
    return SwigluFunction::apply(gate_up);
  }
  const Below below;
  return swiglu(gate_up);
}

TensorPair cross_entropy_recorded(const at::Tensor& logits, const at::Tensor& targets) {
  if (torch::autograd::compute_requires_grad(logits)) {
    check::cross_entropy(logits, targets);
    const variable_list found = CrossEntropyFunction::apply(logits, targets);
    return {found[0], found[1]};
  }
  const Below below;
  const CrossEntropy found = cross_entropy(logits, targets);
  return {found.loss, found.lse};
}

void refuse_derivative(const char* operation, bool needs_gradient) {
  if (needs_gradient) throw Error(std::string(operation) + " has no derivative");
}

// Records the write with autograd after the checks have passed.
void cross_entropy_backward_recorded(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& lse,
                                     const at::Tensor& scale) {
  refuse_derivative("zero::cross_entropy_backward_", torch::autograd::compute_requires_grad(logits, lse, scale));
  const Below below;
  at::Tensor written = logits;
  cross_entropy_backward_(written, targets, lse, scale);
  torch::autograd::impl::bump_version(logits);
}

TensorPair cross_entropy_gradient_recorded(const at::Tensor& logits, const at::Tensor& targets,
                                           const at::Tensor& scale) {
  refuse_derivative("zero::cross_entropy_gradient_", torch::autograd::compute_requires_grad(logits, scale));
  const Below below;
  at::Tensor written = logits;
  const CrossEntropy found = cross_entropy_gradient_(written, targets, scale);
  torch::autograd::impl::bump_version(logits);
  return {found.loss, found.lse};
}

void add_product_recorded(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
  refuse_derivative("zero::add_product_", torch::autograd::compute_requires_grad(sum, a, b));
  const Below below;
  at::Tensor written = sum;
  add_product_(written, a, b);
  torch::autograd::impl::bump_version(sum);
}

void matrix_product_into_recorded(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool add) {
  refuse_derivative("zero::matrix_product_into", torch::autograd::compute_requires_grad(out, a, b));
  const Below below;
  at::Tensor written = out;
  matrix_product_into(written, a, b, add);
  torch::autograd::impl::bump_version(out);
}

at::Tensor matrix_product_recorded(const at::Tensor& a, const at::Tensor& b, const std::optional<at::Tensor>& residual,
                                   const std::optional<at::Tensor>& bias) {
  check::matrix_product(a, b, residual, bias);  // without both, another operation follows
  const at::Tensor added = residual.value_or(at::Tensor()), beside = bias.value_or(at::Tensor());
  refuse_derivative("zero::matrix_product", torch::autograd::compute_requires_grad(a, b, added, beside));
  const Below below;
  return matrix_product(a, b, added, beside);
}

}  // namespace

void register_gradients(torch::Library& library) {
  library.impl("rms_norm", rms_norm_recorded);
  library.impl("swiglu", swiglu_recorded);
  library.impl("cross_entropy", cross_entropy_recorded);
  library.impl("cross_entropy_gradient_", cross_entropy_gradient_recorded);
  library.impl("cross_entropy_backward_", cross_entropy_backward_recorded);
  library.impl("add_product_", add_product_recorded);
  library.impl("matrix_product_into", matrix_product_into_recorded);
  library.impl("matrix_product", matrix_product_recorded);
  for (const char* backward : {"rms_norm_again", "rms_norm_backward", "swiglu_backward", "embedding_backward"})
    library.impl(backward, torch::autograd::autogradNotImplementedFallback());
  for (const char* without : {"dropout_mask", "trained_rows", "logits_chunks", "table_rows"})
    library.impl(without, torch::CppFunction::makeFallthrough());
}

}  // namespace zero
