#pragma once
// GradientPlace: the accumulation target of a weight's gradient, attached to the weight's leaf. A matrix product writes
// there directly instead of making a tensor for autograd.
#include <ATen/core/Tensor.h>

#include <utility>

namespace zero {

/// It belongs to one leaf, which carries it; views and copies of the leaf do not. It is open during a backward pass:
/// from before the leaf's first gradient until the owner of the sum has collected the last. A closed one has no effect
/// and refers to no memory.
class GradientPlace final : public c10::BackendMeta {
 public:
  /// Attaches a new, closed place to the leaf.
  static c10::intrusive_ptr<GradientPlace> put_on(const at::Tensor& leaf);
  /// The open place of a leaf, or null. A function that gets one writes its part with write() and returns no gradient
  /// for the leaf.
  static GradientPlace* open_on(const at::Tensor& leaf);

  /// `sum` has the leaf's shape. Its type is the leaf's or the precise type for such sums. If `adds`, its contents
  /// count; else the first write overwrites it.
  void open(at::Tensor sum, bool adds) {
    sum_ = std::move(sum);
    adds_ = adds;
    written_ = false;
  }
  /// Returns whether anything was written since it was opened.
  bool close() {
    sum_.reset();
    return std::exchange(written_, false);
  }

  /// product(sum, adds) adds to the sum, or overwrites it.
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
