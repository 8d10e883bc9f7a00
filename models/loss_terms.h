#pragma once
// LossTerms: what one pass finds beside the loss of its head. Units add terms to the loss on the way, such as one that
// balances experts; a loss and its terms leave figures for the records.
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

  /// Adds `term` to the loss of the pass and leaves it as a figure. term [] is a sum over the batch like the loss: the
  /// step divides both by one denominator, and one scale multiplies both. Returns y, the unit's output or something
  /// that the output needs; the unit goes on with what is returned. Its backward brings the term's gradient, so that
  /// it is computed with the unit's own and a unit may be recomputed.
  at::Tensor add(const at::Tensor& y, const std::string& name, const at::Tensor& term);

  /// Leaves a figure and nothing in the loss. Equal names are summed.
  void tell(const std::string& name, const at::Tensor& sum);

  const LossFigures& figures() const { return figures_; }
  /// The sum of the terms, [] without gradient; undefined if there are none.
  const at::Tensor& sum() const { return sum_; }

  /// From here on units run for their backward: terms are in the sum already, and get this gradient, [].
  void begin_backward(at::Tensor gradient) { gradient_ = std::move(gradient); }
  const at::Tensor& gradient() const { return gradient_; }

 private:
  LossFigures figures_;
  at::Tensor sum_, gradient_;
};

/// Adds the figures of one more micro-batch to those of a step.
void add_figures(LossFigures& sums, const LossFigures& figures);

}  // namespace zero
