// Stochastic gradient descent with momentum (Sutskever et al. 2013), as in torch.optim.SGD: weight decay is added to
// the gradient, and momentum starts as the first gradient.
#include <ATen/ATen.h>

#include "base/simd/targets.h"
#include "zero/optim/rules/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "zero/optim/rules/sgd.cpp"
#include <hwy/foreach_target.h>

#include "zero/optim/kernels/update_lanes.inl"

HWY_BEFORE_NAMESPACE();
namespace zero::HWY_NAMESPACE {
namespace {

template <class State>
class Plain {
  using D = hn::ScalableTag<State>;
  using Vec = hn::Vec<D>;

 public:
  static constexpr int states = 0;

  HWY_INLINE explicit Plain(const StepFactors& f)
      : lr_(hn::Set(D(), static_cast<State>(f.lr))), decay_(hn::Set(D(), static_cast<State>(f.weight_decay))) {}

  HWY_INLINE void operator()(Vec g, Vec& p, Vec*) const { p = hn::NegMulAdd(hn::MulAdd(p, decay_, g), lr_, p); }

 private:
  Vec lr_, decay_;
};

template <class State>
class Momentum {
  using D = hn::ScalableTag<State>;
  using Vec = hn::Vec<D>;

 public:
  static constexpr int states = 1;

  HWY_INLINE explicit Momentum(const StepFactors& f)
      : lr_(set(f.lr)),
        decay_(set(f.weight_decay)),
        momentum_(set(f.momentum)),
        of_buffer_(set(f.nesterov ? f.momentum : 1)),
        of_gradient_(set(f.nesterov ? 1 : 0)) {}

  HWY_INLINE void operator()(Vec g, Vec& p, Vec* states) const {
    Vec& buffer = states[0];
    const auto decayed = hn::MulAdd(p, decay_, g);
    buffer = hn::MulAdd(buffer, momentum_, decayed);
    p = hn::NegMulAdd(hn::MulAdd(buffer, of_buffer_, hn::Mul(decayed, of_gradient_)), lr_, p);
  }

 private:
  static HWY_INLINE Vec set(double value) { return hn::Set(D(), static_cast<State>(value)); }
  Vec lr_, decay_, momentum_, of_buffer_, of_gradient_;
};

UpdateLoop plain_loop(const UpdateSpan& span) { return loop_of<Plain>(span); }
UpdateLoop momentum_loop(const UpdateSpan& span) { return loop_of<Momentum>(span); }

}  // namespace
}  // namespace zero::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zero {

HWY_EXPORT(plain_loop);
HWY_EXPORT(momentum_loop);

namespace {

class Sgd final : public ElementwiseOptimizer {
 public:
  using ElementwiseOptimizer::ElementwiseOptimizer;

 private:
  bool has_momentum() const { return options().momentum > 0; }
  std::vector<std::string> state_names() const override {
    return has_momentum() ? std::vector<std::string>{"momentum_buffer"} : std::vector<std::string>();
  }
  UpdateLoop loop(const UpdateSpan& span) const override {
    return has_momentum() ? HWY_DYNAMIC_DISPATCH(momentum_loop)(span) : HWY_DYNAMIC_DISPATCH(plain_loop)(span);
  }
  void update_composed(const UpdateSpan& span, const UpdateContext& context) const override {
    at::Tensor g = scaled_gradient(span, context).add_(span.master, context.weight_decay);
    if (has_momentum()) {
      const at::Tensor& buffer = span.states[0].mul_(context.momentum).add_(g);
      g = context.nesterov ? g.add_(buffer, context.momentum) : buffer;
    }
    span.master.sub_(g, context.lr);
    write_weights(span);
  }
};

}  // namespace

OptimizerRow sgd_row() {
  return {"sgd",
          "stochastic gradient descent as in torch",
          {"momentum", "nesterov"},
          {{.weight_decay = 0, .momentum = 0.9, .nesterov = true}, "sgd"},
          [](const OptimizerOptions& options) -> std::unique_ptr<Optimizer> { return std::make_unique<Sgd>(options); }};
}

}  // namespace zero
#endif
