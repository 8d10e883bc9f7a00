// Sixteen floats as one GCC vector: one AVX-512 register, or two of AVX2. Included inside an anonymous namespace by
// files that are compiled for different instruction sets, so nothing here may have external linkage.
typedef float V __attribute__((vector_size(64)));
typedef std::int32_t I __attribute__((vector_size(64)));
typedef std::uint32_t U __attribute__((vector_size(64)));
typedef std::uint16_t H __attribute__((vector_size(32)));

constexpr std::int64_t width = 16;

#define ZERO_INLINE inline __attribute__((always_inline))

ZERO_INLINE V splat(float x) { return V{} + x; }

ZERO_INLINE V widen(H h) { return (V)(__builtin_convertvector(h, U) << 16); }

// Round to nearest even; a NaN stays one.
ZERO_INLINE H narrow(V x) {
  const U bits = (U)x;
  const U rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const U nan = (bits >> 16) | 0x40u;
  return __builtin_convertvector((U)(x == x ? rounded : nan), H);
}

// The first `count` of 16 elements; the rest are zero. `count` is a constant at nearly every call.
ZERO_INLINE V load(const float* p, std::int64_t count) {
  V v{};
  __builtin_memcpy(&v, p, count == width ? sizeof v : static_cast<std::size_t>(count) * 4);
  return v;
}
ZERO_INLINE V load(const Bf16* p, std::int64_t count) {
  H h{};
  __builtin_memcpy(&h, p, count == width ? sizeof h : static_cast<std::size_t>(count) * 2);
  return widen(h);
}
ZERO_INLINE void store(float* p, V v, std::int64_t count) {
  __builtin_memcpy(p, &v, count == width ? sizeof v : static_cast<std::size_t>(count) * 4);
}
ZERO_INLINE void store(Bf16* p, V v, std::int64_t count) {
  const H h = narrow(v);
  __builtin_memcpy(p, &h, count == width ? sizeof h : static_cast<std::size_t>(count) * 2);
}
ZERO_INLINE float get(const float* p) { return *p; }
ZERO_INLINE float get(const Bf16* p) {
  const std::uint32_t bits = static_cast<std::uint32_t>(p->bits) << 16;
  float x;
  __builtin_memcpy(&x, &bits, 4);
  return x;
}
ZERO_INLINE void put(float* p, float x) { *p = x; }
ZERO_INLINE void put(Bf16* p, float x) {
  const H h = narrow(splat(x));
  p->bits = h[0];
}

/// f(index, count) for 16 elements at a time and what is left.
template <class F>
ZERO_INLINE void by_16(std::int64_t n, F f) {
  std::int64_t i = 0;
  for (; i + width <= n; i += width) f(i, width);
  if (i < n) f(i, n - i);
}

ZERO_INLINE float sum(V v) {
  float s[width];
  __builtin_memcpy(s, &v, sizeof v);
  for (int step = 8; step; step /= 2)
    for (int i = 0; i < step; ++i) s[i] += s[i + step];
  return s[0];
}
ZERO_INLINE V larger(V a, V b) { return a > b ? a : b; }
ZERO_INLINE float largest(V v) {
  float m = v[0];
  for (int i = 1; i < width; ++i) m = v[i] > m ? v[i] : m;
  return m;
}

// e^x within 2 units in the last place (the polynomial of Cephes' expf); below -87.3 it stays at e^-87.3, NaN stays
// NaN.
ZERO_INLINE V exponential(V x) {
  x = x < -87.3f ? splat(-87.3f) : x;
  x = x > 88.0f ? splat(88.0f) : x;
  const V magic = splat(0x1.8p23f);
  const V n = (x * 1.44269504088896341f + magic) - magic;
  V r = x - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  V p = splat(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  const I power = (__builtin_convertvector(n, I) + 127) << 23;
  return p * (V)power;
}
