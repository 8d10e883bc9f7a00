#pragma once
// LossTerms: additions to the loss of a pass, and figures for the records. Units add terms on the way, such as one that
// balances experts. A loss and its terms leave figures.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace zero {

/// Numbers for the records, each a sum [] over a batch, by name. Every pass of a run has the same names in one order.
using LossFigures = std::vector<std::pair<std::string, at::Tensor>>;

class LossTerms {
 public:
  LossTerms() = default;
  LossTerms(const LossTerms&) = delete;  // the graph of a pass knows it
  LossTerms& operator=(const LossTerms&) = delete;

  /// Adds `term` to the loss of the pass and leaves it as a figure. term [] is a sum over the batch like the loss. The
  /// step divides both by one denominator, and one scale multiplies both. `y` is the unit's output, or something that
  /// the output needs. Returns y, with which the unit goes on. The backward of that result brings the term's gradient.
  /// The gradient is thus computed with the unit's own, and the unit may be recomputed.
  at::Tensor add(const at::Tensor& y, const std::string& name, const at::Tensor& term);

  /// Leaves a figure and nothing in the loss. Equal names are summed.
  void tell(const std::string& name, const at::Tensor& sum);

  const LossFigures& figures() const { return figures_; }
  /// The sum of the terms, [] without gradient; undefined if there are none.
  const at::Tensor& sum() const { return sum_; }

  /// Begins the backward. Terms of units that are recomputed from now on are in the sum already, and get this
  /// gradient, [].
  void begin_backward(at::Tensor gradient) { gradient_ = std::move(gradient); }
  const at::Tensor& gradient() const { return gradient_; }

 private:
  LossFigures figures_;
  at::Tensor sum_, gradient_;
};

/// Adds the figures of one more micro-batch to those of a step.
void add_figures(LossFigures& sums, const LossFigures& figures);

}  // namespace zero
