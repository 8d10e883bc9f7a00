// The row kernels' one source. The including file names the instruction set and brings <cstdint>, row_kernels.h.
namespace zero::kernels {
namespace {

#include "models/ops/kernels/vector16.inl"

template <class T>
void rms_norm_again(const RmsNormRows<T>& a) {
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const T* x = a.x + row * a.hidden;
    T* y = a.y + row * a.hidden;
    const float rstd = a.rstd[row];
    by_16(
        a.hidden, [&](std::int64_t i, std::int64_t n) __attribute__((always_inline)) {
          store(y + i, load(x + i, n) * rstd * load(a.weight + i, n), n);
        });
  }
}

template <class T>
void rms_norm(const RmsNormRows<T>& a, float eps) {
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const T* x = a.x + row * a.hidden;
    V squares{};
    by_16(
        a.hidden, [&](std::int64_t i, std::int64_t n) __attribute__((always_inline)) {
          const V v = load(x + i, n);
          squares += v * v;
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
    V products{};
    by_16(
        a.hidden, [&](std::int64_t i, std::int64_t n) __attribute__((always_inline)) {
          products += load(dy + i, n) * load(a.weight + i, n) * load(x + i, n);
        });
    const float factor = sum(products) * rstd * rstd * rstd / static_cast<float>(a.hidden);
    by_16(
        a.hidden, [&](std::int64_t i, std::int64_t n) __attribute__((always_inline)) {
          const V d = load(dy + i, n), v = load(x + i, n);
          if (a.dweight) store(a.dweight + i, load(a.dweight + i, n) + d * v * rstd, n);
          store(dx + i, d * load(a.weight + i, n) * rstd - v * factor, n);
        });
  }
}

ZERO_INLINE V sigmoid(V x) { return 1.0f / (1.0f + exponential(-x)); }

template <class T>
void swiglu(const SwigluRows<T>& a) {
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const T *gate = a.gate_up + row * 2 * a.inner, *up = gate + a.inner;
    T* y = a.y + row * a.inner;
    by_16(
        a.inner, [&](std::int64_t i, std::int64_t n) __attribute__((always_inline)) {
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
    by_16(
        a.inner, [&](std::int64_t i, std::int64_t n) __attribute__((always_inline)) {
          const V g = load(gate + i, n), d = load(dy + i, n), s = sigmoid(g);
          store(dgate + i, d * load(up + i, n) * s * (1.0f + g * (1.0f - s)), n);
          store(dup + i, d * g * s, n);
        });
  }
}

template <class T>
void rotate(const RotateHeads<T>& a, float direction) {
  for (std::int64_t head = 0; head < a.heads; ++head) {
    T *low = a.x + head * 2 * a.half, *high = low + a.half;
    by_16(
        a.half, [&](std::int64_t i, std::int64_t n) __attribute__((always_inline)) {
          const V l = load(low + i, n), h = load(high + i, n), c = load(a.cos + i, n),
                  s = load(a.sin + i, n) * direction;
          store(low + i, l * c - h * s, n);
          store(high + i, h * c + l * s, n);
        });
  }
}

template <class T>
float log_sum_exp(const CrossEntropyRow<T>& a) {
  V m = splat(get(a.logits));
  by_16(
      a.vocabulary, [&](std::int64_t i, std::int64_t n) __attribute__((always_inline)) {
        if (n == width) m = larger(m, load(a.logits + i, n));
      });
  float top = largest(m);
  for (std::int64_t i = a.vocabulary / width * width; i < a.vocabulary; ++i)
    top = get(a.logits + i) > top ? get(a.logits + i) : top;
  V total{};
  by_16(
      a.vocabulary, [&](std::int64_t i, std::int64_t n) __attribute__((always_inline)) {
        const V e = exponential(load(a.logits + i, n) - top);
        V kept{};
        store(reinterpret_cast<float*>(&kept), e, n);
        total += kept;
      });
  return top + __builtin_logf(sum(total));
}

template <class T>
void cross_entropy_backward(const CrossEntropyRow<T>& a, float lse, float scale) {
  const float at_target = scale * (__builtin_expf(get(a.logits + a.target) - lse) - 1.0f);
  by_16(
      a.vocabulary, [&](std::int64_t i, std::int64_t n) __attribute__((always_inline)) {
        store(a.logits + i, exponential(load(a.logits + i, n) - lse) * scale, n);
      });
  put(a.logits + a.target, at_target);
}

template <class T>
constexpr RowKernels<T> all_kernels{rms_norm<T>,    rms_norm_again<T>,        rms_norm_backward<T>,
                                    swiglu<T>,      swiglu_backward<T>,       rotate<T>,
                                    log_sum_exp<T>, cross_entropy_backward<T>};

}  // namespace
}  // namespace zero::kernels
