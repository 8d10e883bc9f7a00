#include "zero/optim/rules/adamw8bit_loop.h"

#include <algorithm>
#include <array>

#include "base/simd/targets.h"
#include "zero/optim/kernels/span_types.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "zero/optim/rules/adamw8bit_loop.cpp"
#include <hwy/foreach_target.h>

#include "offload/quantized/block8_lanes.inl"

#ifndef ZERO_OPTIM_RULES_ADAMW8BIT_LOOP
#define ZERO_OPTIM_RULES_ADAMW8BIT_LOOP
namespace zero {
namespace {

template <class G, class W>
struct CodedPointers {
  float* master;
  std::uint8_t *codes1, *codes2;
  float *scales1, *scales2;
  const G* gradient;
  W* weights;
};

}  // namespace
}  // namespace zero
#endif

HWY_BEFORE_NAMESPACE();
namespace zero::HWY_NAMESPACE {
namespace {

/// Processes one block after the other, with gradients of type G and weights of type W (void: none).
template <class G, class W>
class AdamW8bitBlocks {
  using D = hn::ScalableTag<float>;
  using Vec = hn::Vec<D>;
  static constexpr std::int64_t lanes = simd::HWY_NAMESPACE::lanes_of<D>;

 public:
  HWY_INLINE explicit AdamW8bitBlocks(const AdamW8bitFactors<float>& factors)
      : factors_(factors), first_(signed_map()), second_(unsigned_map()) {}

  template <bool stream>
  HWY_INLINE void operator()(const CodedPointers<G, W>& at) const {
    alignas(64) Block8Values m, v;
    first_.decode(at.codes1, *at.scales1, m);
    second_.decode(at.codes2, *at.scales2, v);
    step<stream>(at, m, v);
    first_.encode(m, *at.scales1, at.codes1);
    second_.encode(v, *at.scales2, at.codes2);
  }

 private:
  /// Writes the new moments, and finds their largest magnitude.
  template <bool stream>
  HWY_INLINE void step(const CodedPointers<G, W>& at, Block8Values& moments1, Block8Values& moments2) const {
    const D d;
    const auto set = [&](float x) { return hn::Set(d, x); };
    Vec largest1 = hn::Zero(d), largest2 = hn::Zero(d);
    for (std::int64_t i = 0; i < block8; i += lanes) {
      const auto g = hn::Mul(simd::HWY_NAMESPACE::load(d, at.gradient + i), set(factors_.gradient_scale));
      auto m = hn::LoadU(d, moments1.data() + i), v = hn::LoadU(d, moments2.data() + i);
      m = hn::Add(m, hn::Mul(hn::Sub(g, m), set(factors_.one_minus_beta1)));
      v = hn::Add(hn::Mul(v, set(factors_.beta2)), hn::Mul(hn::Mul(g, g), set(factors_.one_minus_beta2)));
      const auto denominator = hn::Add(hn::Mul(hn::Sqrt(v), set(factors_.inverse_root_bias2)), set(factors_.eps));
      const auto p = hn::Sub(hn::Mul(hn::LoadU(d, at.master + i), set(factors_.keep)),
                             hn::Div(hn::Mul(m, set(factors_.step_size)), denominator));
      hn::StoreU(m, d, moments1.data() + i);
      hn::StoreU(v, d, moments2.data() + i);
      hn::StoreU(p, d, at.master + i);
      if constexpr (!std::is_void_v<W>) {
        if constexpr (stream)
          simd::HWY_NAMESPACE::stream(d, p, at.weights + i);
        else
          simd::HWY_NAMESPACE::store(d, p, at.weights + i);
      }
      largest1 = hn::Max(hn::Abs(m), largest1);  // Max returns the operand that is not a NaN
      largest2 = hn::Max(hn::Abs(v), largest2);
    }
    *at.scales1 = hn::GetLane(hn::MaxOfLanes(d, largest1));
    *at.scales2 = hn::GetLane(hn::MaxOfLanes(d, largest2));
  }

  AdamW8bitFactors<float> factors_;
  Block8Lanes<true> first_;
  Block8Lanes<false> second_;
};

/// Processes an incomplete block. It is padded with zeros, which do not change the other codes.
template <class G, class W>
void update_rest(const AdamW8bitBlocks<G, W>& update, const CodedPointers<G, W>& at, std::int64_t n) {
  std::array<float, block8> master{};
  std::array<G, block8> gradient{};
  std::array<std::uint8_t, block8> codes1, codes2;
  std::array<std::conditional_t<std::is_void_v<W>, float, W>, block8> weights;
  codes1.fill(127);
  codes2.fill(0);
  std::copy_n(at.master, n, master.data());
  std::copy_n(at.gradient, n, gradient.data());
  std::copy_n(at.codes1, n, codes1.data());
  std::copy_n(at.codes2, n, codes2.data());
  update.template operator()<false>(
      {master.data(), codes1.data(), codes2.data(), at.scales1, at.scales2, gradient.data(), weights.data()});
  std::copy_n(master.data(), n, at.master);
  std::copy_n(codes1.data(), n, at.codes1);
  std::copy_n(codes2.data(), n, at.codes2);
  if constexpr (!std::is_void_v<W>) std::copy_n(weights.data(), n, at.weights);
}

template <class G, class W>
CodedPointers<G, W> pointers_of(const UpdateSpan& span) {
  CodedPointers<G, W> at{static_cast<float*>(span.master.data_ptr()),
                         static_cast<std::uint8_t*>(span.states[0].data_ptr()),
                         static_cast<std::uint8_t*>(span.states[1].data_ptr()),
                         static_cast<float*>(span.states[2].data_ptr()),
                         static_cast<float*>(span.states[3].data_ptr()),
                         static_cast<const G*>(span.gradient.const_data_ptr()),
                         nullptr};
  if constexpr (!std::is_void_v<W>) at.weights = static_cast<W*>(span.weights.data_ptr());
  return at;
}

template <class G, class W>
void update_blocks(const UpdateSpan& span, const StepFactors& factors, std::int64_t begin, std::int64_t end,
                   bool stream) {
  const CodedPointers<G, W> first = pointers_of<G, W>(span);
  const auto from = [&](std::int64_t i) {
    const std::int64_t b = i / block8;
    CodedPointers<G, W> at{first.master + i,  first.codes1 + i,   first.codes2 + i, first.scales1 + b,
                           first.scales2 + b, first.gradient + i, nullptr};
    if constexpr (!std::is_void_v<W>) at.weights = first.weights + i;
    return at;
  };
  const AdamW8bitBlocks<G, W> update{AdamW8bitFactors<float>(factors)};
  std::int64_t i = begin;
  if (stream && !std::is_void_v<W> && reinterpret_cast<std::uintptr_t>(first.weights) % 64 == 0) {
    for (; i + block8 <= end; i += block8) update.template operator()<true>(from(i));
    hwy::FlushStream();
  } else {
    for (; i + block8 <= end; i += block8) update.template operator()<false>(from(i));
  }
  if (i < end) update_rest(update, from(i), end - i);
}

UpdateLoop loop_of_codes(const UpdateSpan& span) {
  if (span.master.scalar_type() != at::kFloat) return nullptr;
  return with_types_of(span, []<class G, class W>(std::type_identity<G>, std::type_identity<W>) -> UpdateLoop {
    return update_blocks<G, W>;
  });
}

}  // namespace
}  // namespace zero::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zero {

HWY_EXPORT(loop_of_codes);

UpdateLoop adamw8bit_loop(const UpdateSpan& span) { return HWY_DYNAMIC_DISPATCH(loop_of_codes)(span); }

}  // namespace zero
#endif
