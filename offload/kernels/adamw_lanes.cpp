#include "offload/kernels/adamw_lanes.h"

#include <algorithm>
#include <type_traits>

#include "base/numbers/half.h"
#include "base/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "offload/kernels/adamw_lanes.cpp"
#include <hwy/foreach_target.h>

#include "base/simd/lanes.inl"

HWY_BEFORE_NAMESPACE();
namespace zero::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using simd::HWY_NAMESPACE::load;
using simd::HWY_NAMESPACE::store;

enum class Writes { cached, past_caches };

/// One vector of elements at a time, of gradients G and weights W (void: none).
template <class State, class G, class W>
class Update {
 public:
  using D = hn::ScalableTag<State>;
  static constexpr std::int64_t lanes = simd::HWY_NAMESPACE::lanes_of<D>;

  HWY_INLINE Update(const AdamWPointers<State>& at, const AdamWConstants<State>& c)
      : at_(at),
        gradient_scale_(hn::Set(D(), c.gradient_scale)),
        keep_(hn::Set(D(), c.keep)),
        one_minus_beta1_(hn::Set(D(), c.one_minus_beta1)),
        beta2_(hn::Set(D(), c.beta2)),
        one_minus_beta2_(hn::Set(D(), c.one_minus_beta2)),
        step_size_(hn::Set(D(), c.step_size)),
        inverse_root_bias2_(hn::Set(D(), c.inverse_root_bias2)),
        eps_(hn::Set(D(), c.eps)) {}

  template <Writes writes>
  HWY_INLINE void operator()(std::int64_t i) const {
    const D d;
    const auto g = hn::Mul(load(d, static_cast<const G*>(at_.gradient) + i), gradient_scale_);
    auto m = load(d, at_.m + i), v = load(d, at_.v + i), p = load(d, at_.master + i);
    m = hn::MulAdd(hn::Sub(g, m), one_minus_beta1_, m);
    v = hn::MulAdd(v, beta2_, hn::Mul(hn::Mul(g, g), one_minus_beta2_));
    const auto denominator = hn::MulAdd(hn::Sqrt(v), inverse_root_bias2_, eps_);
    p = hn::Sub(hn::Mul(p, keep_), hn::Div(hn::Mul(m, step_size_), denominator));
    store(d, m, at_.m + i);
    store(d, v, at_.v + i);
    store(d, p, at_.master + i);
    if constexpr (!std::is_void_v<W>) {
      W* weights = static_cast<W*>(at_.weights) + i;
      if constexpr (writes == Writes::past_caches)
        simd::HWY_NAMESPACE::stream(d, p, weights);
      else
        store(d, p, weights);
    }
  }

 private:
  using Vec = hn::Vec<D>;
  AdamWPointers<State> at_;
  Vec gradient_scale_, keep_, one_minus_beta1_, beta2_, one_minus_beta2_, step_size_, inverse_root_bias2_, eps_;
};

/// Fewer elements than a vector has lanes: the same operations on copies.
template <class State, class G, class W>
void update_rest(const AdamWPointers<State>& at, const AdamWConstants<State>& c, std::int64_t n) {
  using Weight = std::conditional_t<std::is_void_v<W>, State, W>;
  constexpr std::int64_t lanes = Update<State, G, W>::lanes;
  State master[lanes] = {}, m[lanes] = {}, v[lanes] = {};
  G gradient[lanes] = {};
  Weight weights[lanes];
  std::copy_n(at.master, n, master);
  std::copy_n(at.m, n, m);
  std::copy_n(at.v, n, v);
  std::copy_n(static_cast<const G*>(at.gradient), n, gradient);
  Update<State, G, W>({master, m, v, gradient, weights}, c).template operator()<Writes::cached>(0);
  std::copy_n(master, n, at.master);
  std::copy_n(m, n, at.m);
  std::copy_n(v, n, at.v);
  if constexpr (!std::is_void_v<W>) std::copy_n(weights, n, static_cast<W*>(at.weights));
}

template <class State, class G, class W>
void update(const AdamWPointers<State>& at, const AdamWConstants<State>& c, std::int64_t n, bool stream) {
  const Update<State, G, W> step(at, c);
  constexpr std::int64_t lanes = Update<State, G, W>::lanes;
  std::int64_t i = 0;
  if (stream && !std::is_void_v<W> && reinterpret_cast<std::uintptr_t>(at.weights) % 64 == 0) {
    for (; i + lanes <= n; i += lanes) step.template operator()<Writes::past_caches>(i);
    hwy::FlushStream();
  } else {
    for (; i + lanes <= n; i += lanes) step.template operator()<Writes::cached>(i);
  }
  if (i == n) return;
  const auto moved = [i]<class T>(T* pointer) { return pointer + i; };
  void* weights = nullptr;
  if constexpr (!std::is_void_v<W>) weights = moved(static_cast<W*>(at.weights));
  update_rest<State, G, W>(
      {moved(at.master), moved(at.m), moved(at.v), moved(static_cast<const G*>(at.gradient)), weights}, c, n - i);
}

template <class G>
AdamWLoop<float> loop_fp32(std::optional<Number> weights) {
  if (!weights) return update<float, G, void>;
  if (*weights == Number::fp32) return update<float, G, float>;
  if (*weights == Number::bf16) return update<float, G, Bf16>;
  if (*weights == Number::fp16) return update<float, G, Fp16>;
  return nullptr;
}

template <class G>
AdamWLoop<double> loop_fp64(std::optional<Number> weights) {
  if (!weights) return update<double, G, void>;
  if (*weights == Number::fp32) return update<double, G, float>;
  if (*weights == Number::fp64) return update<double, G, double>;
  return nullptr;
}

AdamWLoop<float> adamw_fp32(Number gradient, std::optional<Number> weights) {
  if (gradient == Number::fp32) return loop_fp32<float>(weights);
  if (gradient == Number::bf16) return loop_fp32<Bf16>(weights);
  if (gradient == Number::fp16) return loop_fp32<Fp16>(weights);
  return nullptr;
}

AdamWLoop<double> adamw_fp64(Number gradient, std::optional<Number> weights) {
  if (gradient == Number::fp32) return loop_fp64<float>(weights);
  if (gradient == Number::fp64) return loop_fp64<double>(weights);
  return nullptr;
}

}  // namespace
}  // namespace zero::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zero {

HWY_EXPORT(adamw_fp32);
HWY_EXPORT(adamw_fp64);

template <>
AdamWLoop<float> adamw_loop<float>(Number gradient, std::optional<Number> weights) {
  return HWY_DYNAMIC_DISPATCH(adamw_fp32)(gradient, weights);
}
template <>
AdamWLoop<double> adamw_loop<double>(Number gradient, std::optional<Number> weights) {
  return HWY_DYNAMIC_DISPATCH(adamw_fp64)(gradient, weights);
}

}  // namespace zero
#endif
