// The loop of an optimizer that treats each element by itself, over vectors of any combination of number types. For
// kernels (base/simd/targets.h); included once per target, so the guard toggles.
#if defined(ZERO_OFFLOAD_KERNELS_UPDATE_LANES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ZERO_OFFLOAD_KERNELS_UPDATE_LANES_INL
#undef ZERO_OFFLOAD_KERNELS_UPDATE_LANES_INL
#else
#define ZERO_OFFLOAD_KERNELS_UPDATE_LANES_INL
#endif

#include <algorithm>
#include <type_traits>

#include "base/numbers/half.h"
#include "base/simd/lanes.inl"
#include "zero/optim/kernels/update_loop.h"

HWY_BEFORE_NAMESPACE();
namespace zero::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

enum class Writes { cached, past_caches };

/// One vector of elements at a time, of gradients G and weights W (void: none). Rule<State> is made of a step's factors
/// and called with (gradient, p, states), vectors of State, the states being an array of Rule<State>::states; it changes
/// all but the gradient.
template <template <class> class Rule, class State, class G, class W>
class Update {
 public:
  using D = hn::ScalableTag<State>;
  static constexpr std::int64_t lanes = simd::HWY_NAMESPACE::lanes_of<D>;
  static constexpr int states_held = Rule<State>::states > 0 ? Rule<State>::states : 1;  // an array has an element

  HWY_INLINE Update(const UpdatePointers<State>& at, const StepFactors& factors)
      : at_(at), gradient_scale_(hn::Set(D(), static_cast<State>(factors.gradient_scale))), rule_(factors) {}

  template <Writes writes>
  HWY_INLINE void operator()(std::int64_t i) const {
    using simd::HWY_NAMESPACE::load;
    using simd::HWY_NAMESPACE::store;
    const D d;
    const auto g = hn::Mul(load(d, static_cast<const G*>(at_.gradient) + i), gradient_scale_);
    hn::Vec<D> states[states_held];
    for (int s = 0; s < Rule<State>::states; ++s) states[s] = load(d, at_.states[s] + i);
    auto p = load(d, at_.master + i);
    rule_(g, p, states);
    for (int s = 0; s < Rule<State>::states; ++s) store(d, states[s], at_.states[s] + i);
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
  UpdatePointers<State> at_;
  hn::Vec<D> gradient_scale_;
  Rule<State> rule_;
};

/// Fewer elements than a vector has lanes: the same operations on copies.
template <template <class> class Rule, class State, class G, class W>
void update_rest(const UpdatePointers<State>& at, const StepFactors& factors, std::int64_t n) {
  using Weight = std::conditional_t<std::is_void_v<W>, State, W>;
  constexpr std::int64_t lanes = Update<Rule, State, G, W>::lanes;
  constexpr int states = Rule<State>::states;
  State master[lanes] = {}, held[Update<Rule, State, G, W>::states_held][lanes] = {};
  G gradient[lanes] = {};
  Weight weights[lanes];
  std::copy_n(at.master, n, master);
  UpdatePointers<State> copies{master, {}, gradient, weights};
  for (int s = 0; s < states; ++s) copies.states[s] = std::copy_n(at.states[s], n, held[s]) - n;
  std::copy_n(static_cast<const G*>(at.gradient), n, gradient);
  Update<Rule, State, G, W>(copies, factors).template operator()<Writes::cached>(0);
  std::copy_n(master, n, at.master);
  for (int s = 0; s < states; ++s) std::copy_n(held[s], n, at.states[s]);
  if constexpr (!std::is_void_v<W>) std::copy_n(weights, n, static_cast<W*>(at.weights));
}

template <template <class> class Rule, class State, class G, class W>
void update(const UpdatePointers<State>& at, const StepFactors& factors, std::int64_t n, bool stream) {
  const Update<Rule, State, G, W> step(at, factors);
  constexpr std::int64_t lanes = Update<Rule, State, G, W>::lanes;
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
  UpdatePointers<State> rest{moved(at.master), {}, moved(static_cast<const G*>(at.gradient)), weights};
  for (int s = 0; s < Rule<State>::states; ++s) rest.states[s] = moved(at.states[s]);
  update_rest<Rule, State, G, W>(rest, factors, n - i);
}

template <template <class> class Rule, class G>
UpdateLoop<float> loop_fp32(std::optional<Number> weights) {
  if (!weights) return update<Rule, float, G, void>;
  if (*weights == Number::fp32) return update<Rule, float, G, float>;
  if (*weights == Number::bf16) return update<Rule, float, G, Bf16>;
  if (*weights == Number::fp16) return update<Rule, float, G, Fp16>;
  return nullptr;
}

template <template <class> class Rule, class G>
UpdateLoop<double> loop_fp64(std::optional<Number> weights) {
  if (!weights) return update<Rule, double, G, void>;
  if (*weights == Number::fp32) return update<Rule, double, G, float>;
  if (*weights == Number::fp64) return update<Rule, double, G, double>;
  return nullptr;
}

/// The loops of a rule on this processor.
template <template <class> class Rule>
UpdateLoops loops_of(Number gradient, std::optional<Number> weights) {
  if (gradient == Number::fp32) return {loop_fp32<Rule, float>(weights), loop_fp64<Rule, float>(weights)};
  if (gradient == Number::bf16) return {loop_fp32<Rule, Bf16>(weights), nullptr};
  if (gradient == Number::fp16) return {loop_fp32<Rule, Fp16>(weights), nullptr};
  return {nullptr, loop_fp64<Rule, double>(weights)};
}

}  // namespace
}  // namespace zero::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
