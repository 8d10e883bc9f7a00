// Loads vectors of fp32 or fp64 from memory in any floating type, and stores them. For files of kernels
// (base/simd/targets.h); included once per target, so the guard toggles.
#if defined(ZERO_BASE_SIMD_LANES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ZERO_BASE_SIMD_LANES_INL
#undef ZERO_BASE_SIMD_LANES_INL
#else
#define ZERO_BASE_SIMD_LANES_INL
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <type_traits>

#include "base/numbers/half.h"

HWY_BEFORE_NAMESPACE();
namespace zero::simd::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using Vector = hn::Vec<D>;
template <class D>
concept OfFp32 = std::is_same_v < hn::TFromD<D>,
float > ;
template <class D>
concept OfFp64 = std::is_same_v < hn::TFromD<D>,
double > ;
template <class D>
constexpr std::int64_t lanes_of = static_cast<std::int64_t>(hn::MaxLanes(D()));

/// The upper halves of fp32 bits, rounded to nearest even; a NaN stays a NaN. It computes in integers, since
/// AVX512-BF16 would flush denormals.
template <class D>
HWY_INLINE auto bf16_bits(D, Vector<D> x) {
  const hn::RebindToUnsigned<D> words;
  const auto bits = hn::BitCast(words, x), high = hn::ShiftRight<16>(bits);
  const auto odd = hn::And(high, hn::Set(words, 1));
  const auto nearest = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(words, 0x7FFF))));
  const auto quiet = hn::Or(high, hn::Set(words, 0x40));
  const auto kept = hn::IfThenElse(hn::RebindMask(words, hn::IsNaN(x)), quiet, nearest);
  return hn::DemoteTo(hn::Rebind<std::uint16_t, D>(), hn::BitCast(hn::RebindToSigned<D>(), kept));
}

template <class D>
HWY_INLINE auto fp16_bits(D, Vector<D> x) {
  return hn::BitCast(hn::Rebind<std::uint16_t, D>(), hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), x));
}

template <OfFp32 D>
HWY_INLINE Vector<D> load(D d, const float* from) {
  return hn::LoadU(d, from);
}
template <OfFp32 D>
HWY_INLINE Vector<D> load(D d, const Bf16* from) {
  const auto halves = hn::LoadU(hn::Rebind<std::uint16_t, D>(), reinterpret_cast<const std::uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(hn::RebindToUnsigned<D>(), halves)));
}
template <OfFp32 D>
HWY_INLINE Vector<D> load(D d, const Fp16* from) {
  const auto halves = hn::LoadU(hn::Rebind<std::uint16_t, D>(), reinterpret_cast<const std::uint16_t*>(from));
  return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), halves));
}
template <OfFp64 D>
HWY_INLINE Vector<D> load(D d, const double* from) {
  return hn::LoadU(d, from);
}
template <OfFp64 D, class T>
HWY_INLINE Vector<D> load(D d, const T* from) {
  return hn::PromoteTo(d, load(hn::Rebind<float, D>(), from));
}

template <OfFp32 D>
HWY_INLINE void store(D d, Vector<D> x, float* to) {
  hn::StoreU(x, d, to);
}
template <OfFp32 D>
HWY_INLINE void store(D d, Vector<D> x, Bf16* to) {
  hn::StoreU(bf16_bits(d, x), hn::Rebind<std::uint16_t, D>(), reinterpret_cast<std::uint16_t*>(to));
}
template <OfFp32 D>
HWY_INLINE void store(D d, Vector<D> x, Fp16* to) {
  hn::StoreU(fp16_bits(d, x), hn::Rebind<std::uint16_t, D>(), reinterpret_cast<std::uint16_t*>(to));
}
template <OfFp64 D>
HWY_INLINE void store(D d, Vector<D> x, double* to) {
  hn::StoreU(x, d, to);
}
template <OfFp64 D>
HWY_INLINE void store(D, Vector<D> x, float* to) {
  const hn::Rebind<float, D> narrow;
  hn::StoreU(hn::DemoteTo(narrow, x), narrow, to);
}

/// Stores that bypass the caches. The address must be aligned to a whole vector. hwy::FlushStream() must follow the
/// last store.
template <class D>
HWY_INLINE void stream(D d, Vector<D> x, hn::TFromD<D>* to) {
  hn::Stream(x, d, to);
}
template <class D>
HWY_INLINE void stream(D d, Vector<D> x, Bf16* to) {
  hn::Stream(bf16_bits(d, x), hn::Rebind<std::uint16_t, D>(), reinterpret_cast<std::uint16_t*>(to));
}
template <class D>
HWY_INLINE void stream(D d, Vector<D> x, Fp16* to) {
  hn::Stream(fp16_bits(d, x), hn::Rebind<std::uint16_t, D>(), reinterpret_cast<std::uint16_t*>(to));
}
template <OfFp64 D>
HWY_INLINE void stream(D d, Vector<D> x, float* to) {
  store(d, x, to);
}

}  // namespace zero::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
