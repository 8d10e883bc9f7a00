#pragma once
// LossTerms: terms that units add to the loss of a pass, such as one that balances experts, and metrics that units and
// the loss report.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace zero {

/// Metrics by name, each a sum [] over a batch. Every pass of a run has the same names in the same order.
using LossFigures = std::vector<std::pair<std::string, at::Tensor>>;

class LossTerms {
 public:
  LossTerms() = default;
  LossTerms(const LossTerms&) = delete;  // the pass's autograd graph refers to it
  LossTerms& operator=(const LossTerms&) = delete;

  /// Adds `term` to the loss of the pass and records it as a metric. `term` [] is a sum over the batch, like the loss;
  /// both get the same denominator and the same scale. `y` is the unit's output, or a tensor that the output depends
  /// on. Returns y, which the unit must use from here on: its backward adds the term's gradient. The gradient is thus
  /// computed together with the unit's own, and the unit may be recomputed.
  at::Tensor add(const at::Tensor& y, const std::string& name, const at::Tensor& term);

  /// Records a metric without changing the loss. Values of the same name are summed.
  void tell(const std::string& name, const at::Tensor& sum);

  const LossFigures& figures() const { return figures_; }
  /// The sum of the terms, [] without gradient. Undefined if there are none.
  const at::Tensor& sum() const { return sum_; }

  /// Begins the backward pass. Units that are recomputed from now on do not add their terms again. The terms get this
  /// gradient, [].
  void begin_backward(at::Tensor gradient) { gradient_ = std::move(gradient); }
  const at::Tensor& gradient() const { return gradient_; }

 private:
  LossFigures figures_;
  at::Tensor sum_, gradient_;
};

/// Adds one micro-batch's metrics to those of the step.
void add_figures(LossFigures& sums, const LossFigures& figures);

}  // namespace zero
