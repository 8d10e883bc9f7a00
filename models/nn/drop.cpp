#include "models/nn/drop.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

namespace zero {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct HeldDropout : torch::CustomClassHolder {
  explicit HeldDropout(const Dropout& d) : dropout(d) {}
  Dropout dropout;
};

/// Scales in fp32 (fp64 for fp64): a mask in a narrow type would hold a rounded scale.
at::Tensor dropped(const at::Tensor& x, const Dropout& dropout) {
  const at::Tensor rows = x.reshape({-1, x.size(-1)}), kept = dropout_mask(dropout, rows).sign_().mul_(rows);
  const at::ScalarType precise = at::toOpMathType(x.scalar_type());
  return kept.to(precise).mul_(1 / (1 - dropout.share)).to(x.scalar_type()).view(x.sizes());
}

struct Drop : torch::autograd::Function<Drop> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const c10::intrusive_ptr<HeldDropout>& held) {
    context->saved_data["dropout"] = c10::IValue::make_capsule(held);
    return dropped(x, held->dropout);
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto held = c10::static_intrusive_pointer_cast<HeldDropout>(context->saved_data["dropout"].toCapsule());
    return {dropped(grads[0], held->dropout), {}};
  }
};

}  // namespace

at::Tensor drop(const at::Tensor& x, const Dropout& dropout) {
  return dropout.share > 0 ? Drop::apply(x, c10::make_intrusive<HeldDropout>(dropout)) : x;
}

}  // namespace zero
