#include "zero/core/kernels/reduce_lanes.h"

#include <algorithm>
#include <type_traits>

#include "base/numbers/number_types.h"
#include "base/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "zero/core/kernels/reduce_lanes.cpp"
#include <hwy/foreach_target.h>

#include "base/simd/lanes.inl"

HWY_BEFORE_NAMESPACE();
namespace zero::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using simd::HWY_NAMESPACE::lanes_of;
using simd::HWY_NAMESPACE::load;
using simd::HWY_NAMESPACE::store;

using F64 = hn::ScalableTag<double>;
constexpr std::int64_t lanes64 = lanes_of<F64>;

/// Adds the squares of one row of norm_sums elements, each to its own sum.
template <class T>
HWY_INLINE void add_row(const T* row, hn::Vec<F64>* sums) {
  const F64 d;
  if constexpr (std::is_same_v<T, double>) {
    for (int r = 0; r < norm_sums / lanes64; ++r) {
      const auto x = load(d, row + r * lanes64);
      sums[r] = hn::MulAdd(x, x, sums[r]);
    }
  } else {
    const hn::ScalableTag<float> wide;
    const hn::Half<decltype(wide)> half;
    for (int r = 0; r < norm_sums / lanes64; r += 2) {
      const auto both = load(wide, row + r * lanes64);
      const auto low = hn::PromoteTo(d, hn::LowerHalf(half, both)), high = hn::PromoteTo(d, hn::UpperHalf(half, both));
      sums[r] = hn::MulAdd(low, low, sums[r]);
      sums[r + 1] = hn::MulAdd(high, high, sums[r + 1]);
    }
  }
}

template <class T>
void squares(const void* source, std::int64_t n, double* sums) {
  const F64 d;
  const T* from = static_cast<const T*>(source);
  hn::Vec<F64> in_registers[norm_sums / lanes64];
  for (int r = 0; r < norm_sums / lanes64; ++r) in_registers[r] = hn::LoadU(d, sums + r * lanes64);
  std::int64_t i = 0;
  for (; i + norm_sums <= n; i += norm_sums) add_row(from + i, in_registers);
  if (i < n) {  // zeros do not change the sums
    T rest[norm_sums] = {};
    std::copy_n(from + i, n - i, rest);
    add_row(rest, in_registers);
  }
  for (int r = 0; r < norm_sums / lanes64; ++r) hn::StoreU(in_registers[r], d, sums + r * lanes64);
}

template <class D, class To, class From, bool accumulate>
HWY_INLINE void pack_vector(To* to, const From* from) {
  const D d;
  auto x = load(d, from);
  if constexpr (accumulate) x = hn::Add(load(d, to), x);
  store(d, x, to);
}

/// D: vectors of the type in which values are added.
template <class D, class To, class From, bool accumulate>
void pack(void* destination, const void* source, std::int64_t n) {
  constexpr std::int64_t lanes = lanes_of<D>;
  To* to = static_cast<To*>(destination);
  const From* from = static_cast<const From*>(source);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) pack_vector<D, To, From, accumulate>(to + i, from + i);
  if (i == n) return;
  To rest_to[lanes] = {};
  From rest_from[lanes] = {};
  std::copy_n(to + i, n - i, rest_to);
  std::copy_n(from + i, n - i, rest_from);
  pack_vector<D, To, From, accumulate>(rest_to, rest_from);
  std::copy_n(rest_to, n - i, to + i);
}

template <class To, class From>
PackLoop pack_of(bool accumulate) {
  constexpr bool any_64 = std::is_same_v<To, double> || std::is_same_v<From, double>;
  if constexpr (any_64 && (sizeof(To) == 2 || sizeof(From) == 2))
    return nullptr;
  else {
    using D = hn::ScalableTag<std::conditional_t<any_64, double, float>>;
    return accumulate ? pack<D, To, From, true> : pack<D, To, From, false>;
  }
}

SquaresLoop squares_here(Number source) {
  return with_float_type(source, []<class T>(T) -> SquaresLoop { return squares<T>; });
}

PackLoop pack_here(Number destination, Number source, bool accumulate) {
  return with_float_type(destination, [&]<class To>(To) {
    return with_float_type(source, [&]<class From>(From) { return pack_of<To, From>(accumulate); });
  });
}

}  // namespace
}  // namespace zero::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zero {

HWY_EXPORT(squares_here);
HWY_EXPORT(pack_here);

SquaresLoop squares_loop(Number source) { return HWY_DYNAMIC_DISPATCH(squares_here)(source); }

PackLoop pack_loop(Number destination, Number source, bool accumulate) {
  return HWY_DYNAMIC_DISPATCH(pack_here)(destination, source, accumulate);
}

}  // namespace zero
#endif
