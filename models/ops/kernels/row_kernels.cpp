#include "models/ops/kernels/row_kernels.h"

#include <algorithm>

#include "base/numbers/half.h"
#include "base/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "models/ops/kernels/row_kernels.cpp"
#include <hwy/foreach_target.h>

#include "base/simd/row16.inl"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::HWY_NAMESPACE {
namespace {

/// v with elements from `count` on set to zero.
HWY_INLINE V first(V v, std::int64_t count) {
  if (count == width) return v;
  float kept[width];
  store(kept, v, width);
  return load(kept, count);
}

template <class T>
void rms_norm_again(const RmsNormRows<T>& a) {
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const T* x = a.x + row * a.hidden;
    T* y = a.y + row * a.hidden;
    const float rstd = a.rstd[row];
    by_16(a.hidden, [&](std::int64_t i, std::int64_t n)
                        HWY_ATTR { store(y + i, load(x + i, n) * rstd * load(a.weight + i, n), n); });
  }
}

template <class T>
void rms_norm(const RmsNormRows<T>& a, float eps) {
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const T* x = a.x + row * a.hidden;
    V squares = splat(0);
    by_16(a.hidden, [&](std::int64_t i, auto n) ZERO_LAMBDA {
      const V v = load(x + i, n);
      squares = multiply_add(v, v, squares);
    });
    a.rstd[row] = 1.0f / __builtin_sqrtf(sum(squares) / static_cast<float>(a.hidden) + eps);
    rms_norm_again<T>({x, a.weight, a.y + row * a.hidden, a.rstd + row, 1, a.hidden});
  }
}

// With g = dy * weight: dx = rstd * g - x * rstd^3 * mean(g * x).
template <class T>
void rms_norm_backward(const RmsNormBackwardRows<T>& a) {
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const std::int64_t at = row * a.hidden;
    const T *dy = a.dy + at, *x = a.x + at;
    T* dx = a.dx + at;
    const float rstd = a.rstd[row];
    V products = splat(0);
    by_16(a.hidden, [&](std::int64_t i, std::int64_t n) HWY_ATTR {
      products = multiply_add(load(dy + i, n) * load(a.weight + i, n), load(x + i, n), products);
    });
    const float factor = sum(products) * rstd * rstd * rstd / static_cast<float>(a.hidden);
    by_16(a.hidden, [&](std::int64_t i, auto n) ZERO_LAMBDA {
      const V d = load(dy + i, n), v = load(x + i, n);
      if (a.dweight) store(a.dweight + i, multiply_add(d * v, splat(rstd), load(a.dweight + i, n)), n);
      store(dx + i, multiply_subtract(d * load(a.weight + i, n), splat(rstd), v * factor), n);
    });
  }
}

HWY_INLINE V sigmoid(V x) { return 1.0f / (1.0f + exponential(-x)); }

template <class T>
void swiglu(const SwigluRows<T>& a) {
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const T *gate = a.gate_up + row * 2 * a.inner, *up = gate + a.inner;
    T* y = a.y + row * a.inner;
    by_16(a.inner, [&](std::int64_t i, auto n) ZERO_LAMBDA {
      const V g = load(gate + i, n);
      store(y + i, g * sigmoid(g) * load(up + i, n), n);
    });
  }
}

template <class T>
void swiglu_backward(const SwigluBackwardRows<T>& a) {
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const T *gate = a.gate_up + row * 2 * a.inner, *up = gate + a.inner, *dy = a.dy + row * a.inner;
    T *dgate = a.dgate_up + row * 2 * a.inner, *dup = dgate + a.inner;
    by_16(a.inner, [&](std::int64_t i, auto n) ZERO_LAMBDA {
      const V g = load(gate + i, n), d = load(dy + i, n), s = sigmoid(g);
      store(dgate + i, d * load(up + i, n) * s * multiply_add(g, 1.0f - s, splat(1)), n);
      store(dup + i, d * g * s, n);
    });
  }
}

template <class T>
void rotate(const RotateHeads<T>& a, float direction) {
  for (std::int64_t head = 0; head < a.heads; ++head) {
    T *low = a.x + head * 2 * a.half, *high = low + a.half;
    by_16(a.half, [&](std::int64_t i, auto n) ZERO_LAMBDA {
      const V l = load(low + i, n), h = load(high + i, n), c = load(a.cos + i, n), s = load(a.sin + i, n) * direction;
      store(low + i, multiply_subtract(l, c, h * s), n);
      store(high + i, multiply_add(h, c, l * s), n);
    });
  }
}

template <class T>
float log_sum_exp(const CrossEntropyRow<T>& a) {
  V m = splat(to_float(*a.logits));
  by_16(a.vocabulary, [&](std::int64_t i, auto n) ZERO_LAMBDA {
    if (n == width) m = larger(m, load(a.logits + i, n));
  });
  float top = largest(m);
  for (std::int64_t i = a.vocabulary / width * width; i < a.vocabulary; ++i)
    top = to_float(a.logits[i]) > top ? to_float(a.logits[i]) : top;
  V total = splat(0);
  by_16(a.vocabulary, [&](std::int64_t i, auto n) ZERO_LAMBDA {
    const V e = exponential(load(a.logits + i, n) - top);
    total += first(e, n);
  });
  return top + __builtin_logf(sum(total));
}

template <class T>
void cross_entropy_backward(const CrossEntropyRow<T>& a, float lse, float scale) {
  const float at_target = scale * (__builtin_expf(to_float(a.logits[a.target]) - lse) - 1.0f);
  by_16(a.vocabulary, [&](std::int64_t i, std::int64_t n)
                          HWY_ATTR { store(a.logits + i, exponential(load(a.logits + i, n) - lse) * scale, n); });
  a.logits[a.target] = rounded<T>(at_target);
}

template <class T>
constexpr RowKernels<T> all_kernels{rms_norm<T>,    rms_norm_again<T>,        rms_norm_backward<T>,
                                    swiglu<T>,      swiglu_backward<T>,       rotate<T>,
                                    log_sum_exp<T>, cross_entropy_backward<T>};

const RowKernels<float>* fp32_kernels() { return &all_kernels<float>; }
const RowKernels<Bf16>* bf16_kernels() { return &all_kernels<Bf16>; }

}  // namespace
}  // namespace zero::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zero::kernels {

HWY_EXPORT(fp32_kernels);
HWY_EXPORT(bf16_kernels);

template <>
const RowKernels<float>& row_kernels<float>() {
  return *HWY_DYNAMIC_DISPATCH(fp32_kernels)();
}
template <>
const RowKernels<Bf16>& row_kernels<Bf16>() {
  return *HWY_DYNAMIC_DISPATCH(bf16_kernels)();
}

}  // namespace zero::kernels
#endif
