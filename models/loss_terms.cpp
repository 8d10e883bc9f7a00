#include "models/loss_terms.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "base/error.h"

namespace zero {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

/// The identity on y, whose backward also passes the gradient of the pass to the term.
struct AddedTerm : torch::autograd::Function<AddedTerm> {
  static Variable forward(AutogradContext* context, const Variable& y, const Variable& term, std::int64_t terms) {
    context->saved_data["terms"] = terms;
    context->saved_data["type"] = term.scalar_type();
    return y.view_as(y);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto& terms = *reinterpret_cast<const LossTerms*>(context->saved_data["terms"].toInt());
    ZERO_CHECK(terms.gradient().defined(), "a term of a loss has its backward in that of its pass");
    return {gradients[0], terms.gradient().to(context->saved_data["type"].toScalarType()), Variable()};
  }
};

}  // namespace

at::Tensor LossTerms::add(const at::Tensor& y, const std::string& name, const at::Tensor& term) {
  ZERO_CHECK(term.dim() == 0, "a term of the loss is one number: " + name);
  if (!gradient_.defined()) {
    tell(name, term);
    const at::Tensor value = term.detach();
    sum_ = sum_.defined() ? sum_ + value : value;
  }
  if (!at::GradMode::is_enabled()) return y;  // a unit that will be recomputed
  return AddedTerm::apply(y, term, reinterpret_cast<std::int64_t>(this));
}

void LossTerms::tell(const std::string& name, const at::Tensor& sum) { add_figures(figures_, {{name, sum.detach()}}); }

void add_figures(LossFigures& sums, const LossFigures& figures) {
  for (const auto& [name, value] : figures) {
    const auto found = std::ranges::find(sums, name, &LossFigures::value_type::first);
    if (found == sums.end())
      sums.emplace_back(name, value.to(at::kDouble));
    else
      found->second = found->second + value.to(at::kDouble);
  }
}

}  // namespace zero
