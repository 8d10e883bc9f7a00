// Packs rows of q, k, v and gradients for block_product.inl. `rows` real rows are followed by zeros up to `padded`.
template <class T>
struct RowsOf {
  const T* at;
  std::int64_t stride;  // elements
  std::int64_t rows, padded, head_dim;
};

/// dst [padded, head_dim] receives the rows unchanged.
template <class T>
void pack_rows(const RowsOf<T>& a, T* dst) {
  for (std::int64_t t = 0; t < a.rows; ++t)
    __builtin_memcpy(dst + t * a.head_dim, a.at + t * a.stride, static_cast<std::size_t>(a.head_dim) * sizeof(T));
  __builtin_memset(dst + a.rows * a.head_dim, 0,
                   static_cast<std::size_t>((a.padded - a.rows) * a.head_dim) * sizeof(T));
}

/// dst [padded / 64, units of a row, 64]: the transpose of each block of 64 rows. A block is contiguous, because rows
/// that lie a power of two apart share a few sets of the cache. A Unit is a word for the second factor and an element
/// for the first.
template <class Unit, class T>
void pack_transposed(const RowsOf<T>& a, Unit* dst) {
  const std::int64_t units =
      a.head_dim * static_cast<std::int64_t>(sizeof(T)) / static_cast<std::int64_t>(sizeof(Unit));
  for (std::int64_t t = 0; t < a.padded; t += 16)
    for (std::int64_t u = 0; u < units; ++u)
      for (std::int64_t i = t; i < t + 16; ++i) {
        Unit unit{};
        if (i < a.rows)
          __builtin_memcpy(&unit, reinterpret_cast<const char*>(a.at + i * a.stride) + u * sizeof(Unit), sizeof(Unit));
        dst[(i / block * units + u) * block + i % block] = unit;
      }
}

/// dst [words along the rows, head_dim]: pairs of bf16 rows are interleaved, fp32 rows stay as they are.
inline void pack_interleaved(const RowsOf<float>& a, float* dst) { pack_rows(a, dst); }
inline void pack_interleaved(const RowsOf<Bf16>& a, Bf16* dst) {
  for (std::int64_t t = 0; t < a.padded; t += 2)
    for (std::int64_t d = 0; d < a.head_dim; d += 16) {
      const auto row = [&](std::int64_t i) {
        return i < a.rows ? _mm512_cvtepu16_epi32(
                                _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a.at + i * a.stride + d)))
                          : _mm512_setzero_si512();
      };
      _mm512_storeu_si512(dst + t * a.head_dim + 2 * d, _mm512_or_si512(row(t), _mm512_slli_epi32(row(t + 1), 16)));
    }
}

/// Stores two rows of 16 values for the second factor of a product. They become two fp32 rows, `stride` apart, or one
/// row of bf16 pairs.
HWY_INLINE void store_interleaved(float* dst, std::int64_t stride, V first, V second) {
  store(dst, first, width);
  store(dst + stride, second, width);
}
HWY_INLINE void store_interleaved(Bf16* dst, std::int64_t, V first, V second) {
  const __m512i low = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(raw(first)));
  const __m512i high = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(raw(second)));
  _mm512_storeu_si512(dst, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
}
HWY_INLINE void store_rounded(float* dst, V v) { store(dst, v, width); }
HWY_INLINE void store_rounded(Bf16* dst, V v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst), (__m256i)_mm512_cvtneps_pbh(raw(v)));
}
