#include "offload/kernels/lanes_avx512.h"
#include "offload/kernels/reduce_simd.h"

namespace zero::kernels {
namespace {

template <Number from>
void squares(const void* source, std::int64_t n, double* lanes) {
  constexpr int registers = norm_lanes / 8;
  __m512d sum[registers];
  for (int r = 0; r < registers; ++r) sum[r] = _mm512_loadu_pd(lanes + 8 * r);
  std::int64_t i = 0;
  for (; i + norm_lanes <= n; i += norm_lanes) {
    for (int r = 0; r < registers; r += 2) {
      const __m512 x = Lanes16::load<from>(source, i + 8 * r).x;
      const __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(x)),
                    high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
      sum[r] = _mm512_fmadd_pd(low, low, sum[r]);
      sum[r + 1] = _mm512_fmadd_pd(high, high, sum[r + 1]);
    }
  }
  for (int r = 0; r < registers; ++r) _mm512_storeu_pd(lanes + 8 * r, sum[r]);
  squares_rest<from>(source, i, n, lanes);
}

}  // namespace

Pack avx512_pack(Number to, Number from, bool accumulate) {
  return pick_pack<Lanes16, Lane<float>>(to, from, accumulate);
}

Squares avx512_squares(Number from) {
  switch (from) {
    case Number::f32:
      return &squares<Number::f32>;
    case Number::bf16:
      return &squares<Number::bf16>;
    case Number::f16:
      return &squares<Number::f16>;
    default:
      return nullptr;
  }
}

}  // namespace zero::kernels
