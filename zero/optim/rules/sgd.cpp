// Stochastic gradient descent with momentum (Sutskever et al. 2013), as torch.optim.SGD has it: weight decay is part of
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

UpdateLoops plain_loops(Number gradient, std::optional<Number> weights) { return loops_of<Plain>(gradient, weights); }
UpdateLoops momentum_loops(Number gradient, std::optional<Number> weights) {
  return loops_of<Momentum>(gradient, weights);
}

}  // namespace
}  // namespace zero::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zero {

HWY_EXPORT(plain_loops);
HWY_EXPORT(momentum_loops);

namespace {

class Sgd final : public ElementwiseOptimizer {
 public:
  using ElementwiseOptimizer::ElementwiseOptimizer;

 private:
  bool has_momentum() const { return options().momentum > 0; }
  std::vector<std::string> state_names() const override {
    return has_momentum() ? std::vector<std::string>{"momentum_buffer"} : std::vector<std::string>();
  }
  ChooseLoops loops() const override {
    if (!has_momentum())
      return [](Number gradient, std::optional<Number> weights) {
        return HWY_DYNAMIC_DISPATCH(plain_loops)(gradient, weights);
      };
    return [](Number gradient, std::optional<Number> weights) {
      return HWY_DYNAMIC_DISPATCH(momentum_loops)(gradient, weights);
    };
  }
  void update_composed(const UpdateSpan& span, const UpdateContext& context) const override {
    const StepFactors& f = context.factors;
    at::Tensor g = scaled_gradient(span, f).add_(span.master, f.weight_decay);
    if (has_momentum()) {
      const at::Tensor& buffer = span.states[0].mul_(f.momentum).add_(g);
      g = f.nesterov ? g.add_(buffer, f.momentum) : buffer;
    }
    span.master.sub_(g, f.lr);
    write_weights(span);
  }
};

}  // namespace

OptimizerRow sgd_row() {
  return {"sgd",
          "stochastic gradient descent as torch has it",
          {"momentum", "nesterov"},
          {{.weight_decay = 0, .momentum = 0.9, .nesterov = true}, "sgd"},
          [](const OptimizerOptions& options) -> std::unique_ptr<Optimizer> { return std::make_unique<Sgd>(options); }};
}

}  // namespace zero
#endif
