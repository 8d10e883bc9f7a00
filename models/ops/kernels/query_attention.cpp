#include "models/ops/kernels/query_attention.h"

#include "base/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "models/ops/kernels/query_attention.cpp"
#include <hwy/foreach_target.h>

#include "base/simd/row16.inl"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::HWY_NAMESPACE {
namespace {

/// Heads that share one pass over keys and values.
constexpr int heads_at_once = 4;
constexpr float unseen_score = -3e38f;

template <int Heads, class T>
HWY_INLINE void scores_of(const QueryAttention<T>& a, std::int64_t head) {
  const float* q = a.q + head * a.head_dim;
  float* weights = a.weights + head * a.length;
  for (std::int64_t j = 0; j < a.length; ++j) {
    const bool counts = !a.seen || a.seen[j];
    V sums[Heads];
    for (V& s : sums) s = splat(0);
    if (counts)
      by_16(a.head_dim, [&](std::int64_t i, auto n) ZERO_LAMBDA {
        const V k = load(a.k + j * a.head_dim + i, n);
        for (int h = 0; h < Heads; ++h) sums[h] = multiply_add(load(q + h * a.head_dim + i, n), k, sums[h]);
      });
    for (int h = 0; h < Heads; ++h) weights[h * a.length + j] = counts ? sum(sums[h]) * a.scale : unseen_score;
  }
}

/// Replaces a head's scores by their exponentials, and returns the sum of these.
template <class T>
HWY_INLINE float exponentials_of(const QueryAttention<T>& a, float* weights) {
  float top = unseen_score;
  for (std::int64_t j = 0; j < a.length; ++j) top = weights[j] > top ? weights[j] : top;
  by_16(a.length,
        [&](std::int64_t i, auto n) ZERO_LAMBDA { store(weights + i, exponential(load(weights + i, n) - top), n); });
  if (a.seen)
    for (std::int64_t j = 0; j < a.length; ++j) weights[j] = a.seen[j] ? weights[j] : 0;
  V total = splat(0);
  by_16(a.length, [&](std::int64_t i, auto n) ZERO_LAMBDA { total += load(weights + i, n); });
  return sum(total);
}

template <int Heads, class T>
HWY_INLINE void values_of(const QueryAttention<T>& a, std::int64_t head, const float* totals) {
  const float* weights = a.weights + head * a.length;
  by_16(a.head_dim, [&](std::int64_t i, auto n) ZERO_LAMBDA {
    V sums[Heads];
    for (V& s : sums) s = splat(0);
    for (std::int64_t j = 0; j < a.length; ++j) {
      if (a.seen && !a.seen[j]) continue;
      const V v = load(a.v + j * a.head_dim + i, n);
      for (int h = 0; h < Heads; ++h) sums[h] = multiply_add(splat(weights[h * a.length + j]), v, sums[h]);
    }
    for (int h = 0; h < Heads; ++h) store(a.y + (head + h) * a.head_dim + i, sums[h] / splat(totals[h]), n);
  });
}

/// Processes heads from `head` on in groups of Heads, then of half as many.
template <int Heads, class T>
HWY_INLINE void by_heads_of(const QueryAttention<T>& a, std::int64_t head) {
  for (; head + Heads <= a.heads; head += Heads) {
    scores_of<Heads>(a, head);
    float totals[Heads];
    for (int h = 0; h < Heads; ++h) totals[h] = exponentials_of(a, a.weights + (head + h) * a.length);
    values_of<Heads>(a, head, totals);
  }
  if constexpr (Heads > 1) by_heads_of<Heads / 2>(a, head);
}

void attend_fp32(const QueryAttention<float>& a) { by_heads_of<heads_at_once>(a, 0); }
void attend_bf16(const QueryAttention<Bf16>& a) { by_heads_of<heads_at_once>(a, 0); }

}  // namespace
}  // namespace zero::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zero::kernels {

HWY_EXPORT(attend_fp32);
HWY_EXPORT(attend_bf16);

template <>
void attend_query(const QueryAttention<float>& query) {
  HWY_DYNAMIC_DISPATCH(attend_fp32)(query);
}
template <>
void attend_query(const QueryAttention<Bf16>& query) {
  HWY_DYNAMIC_DISPATCH(attend_bf16)(query);
}

}  // namespace zero::kernels
#endif
