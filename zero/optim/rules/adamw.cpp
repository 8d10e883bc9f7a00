// AdamW (Loshchilov and Hutter 2019), as in torch.optim.AdamW: weights decay before the step.
#include <cmath>

#include "base/simd/targets.h"
#include "zero/optim/kernels/device_step.h"
#include "zero/optim/rules/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "zero/optim/rules/adamw.cpp"
#include <hwy/foreach_target.h>

#include "zero/optim/kernels/update_lanes.inl"

HWY_BEFORE_NAMESPACE();
namespace zero::HWY_NAMESPACE {
namespace {

template <class State>
class AdamW {
  using D = hn::ScalableTag<State>;
  using Vec = hn::Vec<D>;

 public:
  static constexpr int states = 2;

  HWY_INLINE explicit AdamW(const StepFactors& f) {
    const auto step = static_cast<double>(f.step);
    keep_ = set(1 - f.lr * f.weight_decay);
    one_minus_beta1_ = set(1 - f.beta1);
    beta2_ = set(f.beta2);
    one_minus_beta2_ = set(1 - f.beta2);
    step_size_ = set(f.lr / (1 - std::pow(f.beta1, step)));
    inverse_root_bias2_ = set(1 / std::sqrt(1 - std::pow(f.beta2, step)));
    eps_ = set(f.eps);
  }

  HWY_INLINE void operator()(Vec g, Vec& p, Vec* moments) const {
    Vec &m = moments[0], &v = moments[1];
    m = hn::MulAdd(hn::Sub(g, m), one_minus_beta1_, m);
    v = hn::MulAdd(v, beta2_, hn::Mul(hn::Mul(g, g), one_minus_beta2_));
    const auto denominator = hn::MulAdd(hn::Sqrt(v), inverse_root_bias2_, eps_);
    p = hn::Sub(hn::Mul(p, keep_), hn::Div(hn::Mul(m, step_size_), denominator));
  }

 private:
  static HWY_INLINE Vec set(double value) { return hn::Set(D(), static_cast<State>(value)); }
  Vec keep_, one_minus_beta1_, beta2_, one_minus_beta2_, step_size_, inverse_root_bias2_, eps_;
};

UpdateLoop adamw_loop(const UpdateSpan& span) { return loop_of<AdamW>(span); }

}  // namespace
}  // namespace zero::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zero {

HWY_EXPORT(adamw_loop);

namespace {

class AdamW final : public ElementwiseOptimizer {
 public:
  using ElementwiseOptimizer::ElementwiseOptimizer;
  bool reads_device_numbers() const override { return true; }

 private:
  std::vector<std::string> state_names() const override { return {"exp_avg", "exp_avg_sq"}; }
  UpdateLoop loop(const UpdateSpan& span) const override { return HWY_DYNAMIC_DISPATCH(adamw_loop)(span); }
  void update_composed(const UpdateSpan& span, const UpdateContext& context) const override {
    device_adamw_update(span, context, *context.numbers);
  }
};

}  // namespace

OptimizerRow adamw_row() {
  return {
      "adamw",
      "AdamW as in torch",
      {"betas", "eps"},
      {{.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8}, "adamw"},
      [](const OptimizerOptions& options) -> std::unique_ptr<Optimizer> { return std::make_unique<AdamW>(options); }};
}

}  // namespace zero
#endif
