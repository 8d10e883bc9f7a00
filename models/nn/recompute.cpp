#include "models/nn/recompute.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

namespace zero {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

struct HeldBody : torch::CustomClassHolder {
  HeldBody(RecomputedBody b, InputPlace p) : body(std::move(b)), place(std::move(p)) {}
  RecomputedBody body;
  InputPlace place;
};
using BodyPointer = c10::intrusive_ptr<HeldBody>;

// The trainable leaves are passed as a TensorList, because autograd does not look into a std::vector argument.
struct Recompute : torch::autograd::Function<Recompute> {
  static Variable forward(AutogradContext* context, const Variable& x, at::TensorList trainable,
                          const BodyPointer& held) {
    context->saved_data["body"] = c10::IValue::make_capsule(held);
    context->saved_data["needs_x"] = x.requires_grad();
    if (held->place.keep) held->place.keep(x.detach());
    variable_list saved{held->place.keep ? Variable() : x};
    saved.insert(saved.end(), trainable.begin(), trainable.end());
    context->save_for_backward(std::move(saved));
    at::NoGradGuard no_grad;
    return held->body(x);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    variable_list inputs = context->get_saved_variables();
    const bool needs_x = context->saved_data["needs_x"].toBool();
    const auto held = c10::static_intrusive_pointer_cast<HeldBody>(context->saved_data["body"].toCapsule());
    at::AutoGradMode with_grad(true);
    inputs[0] = held->place.take ? held->place.take() : inputs[0].detach();
    inputs[0].set_requires_grad(needs_x);
    const Variable y = held->body(inputs[0]);
    const variable_list wanted(inputs.begin() + (needs_x ? 0 : 1), inputs.end());
    variable_list found = torch::autograd::grad({y}, wanted, {gradients[0]}, false, false, true);
    if (!needs_x) found.insert(found.begin(), Variable());
    found.push_back(Variable());  // the body
    return found;
  }
};

}  // namespace

at::Tensor recompute(RecomputedBody body, const at::Tensor& x, const std::vector<at::Tensor>& trainable,
                     InputPlace place) {
  return Recompute::apply(x, at::TensorList(trainable),
                          c10::make_intrusive<HeldBody>(std::move(body), std::move(place)));
}

}  // namespace zero
