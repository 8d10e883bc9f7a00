// Lion (Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms"), as in lion-pytorch.
#include <ATen/ATen.h>

#include "base/simd/targets.h"
#include "zero/optim/rules/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "zero/optim/rules/lion.cpp"
#include <hwy/foreach_target.h>

#include "zero/optim/kernels/update_lanes.inl"

HWY_BEFORE_NAMESPACE();
namespace zero::HWY_NAMESPACE {
namespace {

template <class State>
class Lion {
  using D = hn::ScalableTag<State>;
  using Vec = hn::Vec<D>;

 public:
  static constexpr int states = 1;

  HWY_INLINE explicit Lion(const StepFactors& f)
      : keep_(set(1 - f.lr * f.weight_decay)),
        lr_(set(f.lr)),
        beta1_(set(f.beta1)),
        one_minus_beta1_(set(1 - f.beta1)),
        beta2_(set(f.beta2)),
        one_minus_beta2_(set(1 - f.beta2)) {}

  HWY_INLINE void operator()(Vec g, Vec& p, Vec* states) const {
    Vec& m = states[0];
    const auto direction = hn::MulAdd(g, one_minus_beta1_, hn::Mul(m, beta1_));
    const auto moves = hn::Ne(direction, hn::Zero(D()));
    p = hn::Sub(hn::Mul(p, keep_), hn::IfThenElseZero(moves, hn::CopySign(lr_, direction)));
    m = hn::MulAdd(g, one_minus_beta2_, hn::Mul(m, beta2_));
  }

 private:
  static HWY_INLINE Vec set(double value) { return hn::Set(D(), static_cast<State>(value)); }
  Vec keep_, lr_, beta1_, one_minus_beta1_, beta2_, one_minus_beta2_;
};

UpdateLoop lion_loop(const UpdateSpan& span) { return loop_of<Lion>(span); }

}  // namespace
}  // namespace zero::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zero {

HWY_EXPORT(lion_loop);

namespace {

class Lion final : public ElementwiseOptimizer {
 public:
  using ElementwiseOptimizer::ElementwiseOptimizer;

 private:
  std::vector<std::string> state_names() const override { return {"exp_avg"}; }
  UpdateLoop loop(const UpdateSpan& span) const override { return HWY_DYNAMIC_DISPATCH(lion_loop)(span); }
  void update_composed(const UpdateSpan& span, const UpdateContext& context) const override {
    const at::Tensor g = scaled_gradient(span, context), &m = span.states[0];
    span.master.mul_(1 - context.lr * context.weight_decay)
        .sub_((m * context.beta1).add_(g, 1 - context.beta1).sign_(), context.lr);
    m.mul_(context.beta2).add_(g, 1 - context.beta2);
    write_weights(span);
  }
};

}  // namespace

OptimizerRow lion_row() {
  return {
      "lion",
      "Lion (Chen et al. 2023)",
      {"betas"},
      {{.beta1 = 0.9, .beta2 = 0.99}, "lion"},
      [](const OptimizerOptions& options) -> std::unique_ptr<Optimizer> { return std::make_unique<Lion>(options); }};
}

}  // namespace zero
#endif
