#pragma once
// GradientPlace: where the gradient of a weight is summed up, as the weight's leaf knows it, so that a matrix product
// writes there by itself instead of making a tensor for autograd to hand on.
#include <ATen/core/Tensor.h>

#include <utility>

namespace zero {

/// Of one leaf, which carries it; views and copies of the leaf do not. It is open during a backward pass, from before the
/// leaf's first gradient until whoever owns the sum has collected the last; closed it is as if there were none, and
/// refers to no memory.
class GradientPlace final : public c10::BackendMeta {
 public:
  /// A new one, closed, which the leaf carries from now on.
  static c10::intrusive_ptr<GradientPlace> put_on(const at::Tensor& leaf);
  /// The one that the leaf carries and that is open; null where there is none. A function that gets one writes its part
  /// by write() and returns no gradient for the leaf.
  static GradientPlace* open_on(const at::Tensor& leaf);

  /// `sum` has the leaf's shape, and its type or that in which sums of its type are precise. `adds`: what it holds counts;
  /// else the first that writes overwrites it.
  void open(at::Tensor sum, bool adds) {
    sum_ = std::move(sum);
    adds_ = adds;
    written_ = false;
  }
  /// Whether anything was written since it was opened.
  bool close() {
    sum_.reset();
    return std::exchange(written_, false);
  }

  /// product(sum, adds) leaves in the sum what it adds, or what it overwrites it with.
  template <class Product>
  void write(const Product& product) {
    product(sum_, adds_);
    adds_ = written_ = true;
  }

  c10::intrusive_ptr<c10::BackendMeta> clone(const c10::intrusive_ptr<c10::BackendMeta>&) const override { return {}; }

 private:
  at::Tensor sum_;  // while it is open
  bool adds_ = false, written_ = false;
};

}  // namespace zero
