#pragma once
// GradientPlace: the buffer in which a weight's gradient accumulates, attached to the weight's leaf. A matrix product
// writes to the buffer directly instead of making a tensor for autograd.
#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>

#include <utility>

namespace zero {

/// A place belongs to one leaf; views and copies of the leaf do not have it. It is open during a backward pass, from
/// before the leaf's first gradient until the owner of the sum has collected the last one. A closed place has no effect
/// and refers to no memory.
class GradientPlace final : public c10::BackendMeta {
 public:
  /// Attaches a new, closed place to the leaf.
  static c10::intrusive_ptr<GradientPlace> put_on(const at::Tensor& leaf);
  /// Returns the leaf's open place, or null. A function that finds one passes its gradient to write() and returns none
  /// to autograd.
  static GradientPlace* open_on(const at::Tensor& leaf);

  /// `sum` has the leaf's shape. Its type is the leaf's, or the wider type for sums. If `adds` is set, gradients are
  /// added to its contents; otherwise the first write overwrites them.
  void open(at::Tensor sum, bool adds) {
    sum_ = std::move(sum);
    adds_ = adds;
    written_ = false;
  }
  /// Closes the place. Returns true if anything was written while it was open.
  bool close() {
    sum_.reset();
    return std::exchange(written_, false);
  }

  /// Calls product(sum, adds), which must add to `sum` if `adds` is true, and otherwise overwrite it.
  template <class Product>
  void write(const Product& product) {
    product(sum_, adds_);
    adds_ = written_ = true;
  }

  c10::intrusive_ptr<c10::BackendMeta> clone(const c10::intrusive_ptr<c10::BackendMeta>&) const override { return {}; }

 private:
  at::Tensor sum_;  // defined while the place is open
  bool adds_ = false, written_ = false;
};

/// The leaf's gradient as a function returns it to autograd. Calls product(sum, adds) as GradientPlace::write() does:
/// with the leaf's open place, and then returns an undefined tensor, or else with a new tensor.
template <class Product>
at::Tensor gradient_of(const at::Tensor& leaf, const Product& product) {
  if (GradientPlace* place = GradientPlace::open_on(leaf)) {
    place->write(product);
    return {};
  }
  at::Tensor gradient = at::empty(leaf.sizes(), leaf.options());
  product(gradient, false);
  return gradient;
}

}  // namespace zero
