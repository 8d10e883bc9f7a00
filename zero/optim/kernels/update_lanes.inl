// The loop of an optimizer that treats each element by itself, over vectors of any combination of number types. For
// kernels (base/simd/targets.h); included once per target, so the guard toggles.
#if defined(ZERO_OPTIM_KERNELS_UPDATE_LANES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ZERO_OPTIM_KERNELS_UPDATE_LANES_INL
#undef ZERO_OPTIM_KERNELS_UPDATE_LANES_INL
#else
#define ZERO_OPTIM_KERNELS_UPDATE_LANES_INL
#endif

#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>

#include "base/simd/lanes.inl"
#include "zero/optim/kernels/span_types.h"

HWY_BEFORE_NAMESPACE();
namespace zero::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

enum class Writes { cached, past_caches };

/// One vector of elements at a time, of gradients G and weights W (void: none). Rule<State> is made from a step's
/// factors. It is called with (gradient, p, states), which are vectors of State, and changes all but the gradient.
/// `states` is an array of Rule<State>::states vectors.
template <template <class> class Rule, class State, class G, class W>
class Update {
 public:
  using D = hn::ScalableTag<State>;
  static constexpr std::int64_t lanes = simd::HWY_NAMESPACE::lanes_of<D>;

  HWY_INLINE Update(const UpdateSpan& span, const StepFactors& factors)
      : master_(static_cast<State*>(span.master.data_ptr())),
        gradient_(static_cast<const G*>(span.gradient.const_data_ptr())),
        gradient_scale_(hn::Set(D(), static_cast<State>(factors.gradient_scale))),
        rule_(factors) {
    for (int s = 0; s < states; ++s) states_[s] = static_cast<State*>(span.states[std::size_t(s)].data_ptr());
    if constexpr (has_weights) weights_ = static_cast<W*>(span.weights.data_ptr());
  }

  bool weights_begin_a_line() const { return has_weights && reinterpret_cast<std::uintptr_t>(weights_) % 64 == 0; }

  /// A vector, from element `i` on.
  template <Writes writes>
  HWY_INLINE void operator()(std::int64_t i) const {
    using simd::HWY_NAMESPACE::load;
    using simd::HWY_NAMESPACE::store;
    const D d;
    const auto g = hn::Mul(load(d, gradient_ + i), gradient_scale_);
    hn::Vec<D> held[states_held];
    for (int s = 0; s < states; ++s) held[s] = load(d, states_[s] + i);
    auto p = load(d, master_ + i);
    rule_(g, p, held);
    for (int s = 0; s < states; ++s) store(d, held[s], states_[s] + i);
    store(d, p, master_ + i);
    if constexpr (has_weights) {
      if constexpr (writes == Writes::past_caches)
        simd::HWY_NAMESPACE::stream(d, p, weights_ + i);
      else
        store(d, p, weights_ + i);
    }
  }

  /// The n elements from `i` on, fewer than a vector has lanes: the same operations on copies.
  void rest(std::int64_t i, std::int64_t n) const {
    State master[lanes] = {}, held[states_held][lanes] = {};
    G gradient[lanes] = {};
    [[maybe_unused]] std::conditional_t<has_weights, W, State> weights[lanes];
    std::copy_n(master_ + i, n, master);
    std::copy_n(gradient_ + i, n, gradient);
    Update copies = *this;
    copies.master_ = master;
    copies.gradient_ = gradient;
    for (int s = 0; s < states; ++s) copies.states_[s] = std::copy_n(states_[s] + i, n, held[s]) - n;
    if constexpr (has_weights) copies.weights_ = weights;
    copies.template operator()<Writes::cached>(0);
    std::copy_n(master, n, master_ + i);
    for (int s = 0; s < states; ++s) std::copy_n(held[s], n, states_[s] + i);
    if constexpr (has_weights) std::copy_n(weights, n, weights_ + i);
  }

 private:
  static constexpr bool has_weights = !std::is_void_v<W>;
  static constexpr int states = Rule<State>::states, states_held = states > 0 ? states : 1;  // at least one

  State* master_;
  std::array<State*, states_held> states_{};
  const G* gradient_;
  W* weights_ = nullptr;
  hn::Vec<D> gradient_scale_;
  Rule<State> rule_;
};

template <template <class> class Rule, class State, class G, class W>
void update(const UpdateSpan& span, const StepFactors& factors, std::int64_t begin, std::int64_t end, bool stream) {
  const Update<Rule, State, G, W> step(span, factors);
  constexpr std::int64_t lanes = Update<Rule, State, G, W>::lanes;
  std::int64_t i = begin;
  if (stream && step.weights_begin_a_line()) {
    for (; i + lanes <= end; i += lanes) step.template operator()<Writes::past_caches>(i);
    hwy::FlushStream();
  } else {
    for (; i + lanes <= end; i += lanes) step.template operator()<Writes::cached>(i);
  }
  if (i < end) step.rest(i, end - i);
}

template <template <class> class Rule, class G>
UpdateLoop loop_fp64(std::optional<Number> weights) {
  if (!weights) return update<Rule, double, G, void>;
  if (*weights == Number::fp32) return update<Rule, double, G, float>;
  if (*weights == Number::fp64) return update<Rule, double, G, double>;
  return nullptr;
}

/// Returns the rule's loop on this processor for the span's types; null if there is none.
template <template <class> class Rule>
UpdateLoop loop_of(const UpdateSpan& span) {
  const Number state = number_of(span.master.scalar_type()), gradient = number_of(span.gradient.scalar_type());
  if (state == Number::fp32)
    return with_types_of(span, []<class G, class W>(std::type_identity<G>, std::type_identity<W>) -> UpdateLoop {
      return update<Rule, float, G, W>;
    });
  std::optional<Number> weights;
  if (span.weights.defined()) weights = number_of(span.weights.scalar_type());
  if (state == Number::fp64 && gradient == Number::fp32) return loop_fp64<Rule, float>(weights);
  if (state == Number::fp64 && gradient == Number::fp64) return loop_fp64<Rule, double>(weights);
  return nullptr;
}

}  // namespace
}  // namespace zero::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
