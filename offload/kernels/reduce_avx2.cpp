#include "offload/kernels/lanes_avx2.h"
#include "offload/kernels/reduce_simd.h"

namespace zero::kernels {
namespace {

template <Number from>
void squares(const void* source, std::int64_t n, double* lanes) {
  constexpr int registers = norm_lanes / 4;
  __m256d sum[registers];
  for (int r = 0; r < registers; ++r) sum[r] = _mm256_loadu_pd(lanes + 4 * r);
  std::int64_t i = 0;
  for (; i + norm_lanes <= n; i += norm_lanes) {
    for (int r = 0; r < registers; r += 2) {
      const __m256 x = Lanes8::load<from>(source, i + 4 * r).x;
      const __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(x)),
                    high = _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
      sum[r] = _mm256_fmadd_pd(low, low, sum[r]);
      sum[r + 1] = _mm256_fmadd_pd(high, high, sum[r + 1]);
    }
  }
  for (int r = 0; r < registers; ++r) _mm256_storeu_pd(lanes + 4 * r, sum[r]);
  squares_rest<from>(source, i, n, lanes);
}

}  // namespace

Pack avx2_pack(Number to, Number from, bool accumulate) { return pick_pack<Lanes8, Lane<float>>(to, from, accumulate); }

Squares avx2_squares(Number from) {
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
