#include "zero/core/backward_hooks.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

namespace zero {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

BackwardHooks& observer_of(AutogradContext* context) {
  return *reinterpret_cast<BackwardHooks*>(context->saved_data["hooks"].toInt());
}

void remember(AutogradContext* context, std::int64_t hooks, std::int64_t unit) {
  context->saved_data["hooks"] = hooks;
  context->saved_data["unit"] = unit;
}

struct Enter : torch::autograd::Function<Enter> {
  static Variable forward(AutogradContext* context, const Variable& x, std::int64_t hooks, std::int64_t unit) {
    remember(context, hooks, unit);
    return x.view_as(x);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    observer_of(context).after_backward(int(context->saved_data["unit"].toInt()));
    return {gradients[0], Variable(), Variable()};
  }
};

struct Exit : torch::autograd::Function<Exit> {
  static Variable forward(AutogradContext* context, const Variable& y, std::int64_t hooks, std::int64_t unit) {
    remember(context, hooks, unit);
    return y.view_as(y);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    observer_of(context).before_backward(int(context->saved_data["unit"].toInt()));
    return {gradients[0], Variable(), Variable()};
  }
};

}  // namespace

at::Tensor enter_unit(const at::Tensor& x, BackwardHooks& hooks, int unit) {
  if (!x.defined() || !x.requires_grad()) return x;
  return Enter::apply(x, reinterpret_cast<std::int64_t>(&hooks), std::int64_t(unit));
}

at::Tensor exit_unit(const at::Tensor& y, BackwardHooks& hooks, int unit) {
  if (!y.requires_grad()) return y;
  return Exit::apply(y, reinterpret_cast<std::int64_t>(&hooks), std::int64_t(unit));
}

}  // namespace zero
