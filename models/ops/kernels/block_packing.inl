// Packs rows of q, k, v and gradients for block_product.inl. `rows` real rows are followed by zeros up to `padded`.
template <class T>
struct RowsOf {
  const T* at;
  std::int64_t stride;  // elements
  std::int64_t rows, padded, head_dim;

  /// `count` rows from `begin` on, of which those past the last are zeros.
  RowsOf part(std::int64_t begin, std::int64_t count) const {
    return {at + begin * stride, stride, std::min(count, rows - begin), count, head_dim};
  }
};

/// dst [padded, head_dim] receives the rows unchanged.
template <class T>
void pack_rows(const RowsOf<T>& a, T* dst) {
  for (std::int64_t t = 0; t < a.rows; ++t)
    __builtin_memcpy(dst + t * a.head_dim, a.at + t * a.stride, static_cast<std::size_t>(a.head_dim) * sizeof(T));
  __builtin_memset(dst + a.rows * a.head_dim, 0,
                   static_cast<std::size_t>((a.padded - a.rows) * a.head_dim) * sizeof(T));
}

/// Prefetches rows. The hardware prefetcher does not follow their stride.
template <class Rows>
void prefetch(const Rows& a) {
  for (std::int64_t t = 0; t < a.rows; ++t)
    for (std::int64_t d = 0; d < a.head_dim; d += 64 / static_cast<std::int64_t>(sizeof(*a.at)))
      __builtin_prefetch(a.at + t * a.stride + d);
}

/// Sixteen words of row `i`, from word `begin` on; zeros past the row's end and past the last row.
template <class T>
HWY_INLINE __m512i words_of(const RowsOf<T>& a, std::int64_t i, std::int64_t begin, std::int64_t words) {
  const std::int64_t left = i < a.rows ? std::min<std::int64_t>(16, words - begin) : 0;
  const auto mask = static_cast<__mmask16>((1u << left) - 1);
  return _mm512_maskz_loadu_epi32(mask, reinterpret_cast<const std::int32_t*>(a.at + i * a.stride) + begin);
}

/// dst [padded / side, words of a row, side]: the transpose of each `side` rows in words, a second factor. A block is
/// contiguous, because rows that lie a power of two apart share a few sets of the cache.
template <class T>
void pack_transposed_words(const RowsOf<T>& a, T* dst, std::int64_t side = block) {
  const std::int64_t words = a.head_dim * static_cast<std::int64_t>(sizeof(T)) / 4;
  auto* const out = reinterpret_cast<std::int32_t*>(dst);
  for (std::int64_t t = 0; t < a.padded; t += 16)
    for (std::int64_t w = 0; w < words; w += 16) {
      __m512i r[16];
      for (std::int64_t i = 0; i < 16; ++i) r[i] = words_of(a, t + i, w, words);
      transpose(r);
      std::int32_t* const to = out + (t / side * words + w) * side + t % side;
      for (std::int64_t i = 0; i < std::min<std::int64_t>(16, words - w); ++i) _mm512_storeu_si512(to + i * side, r[i]);
    }
}

/// Words of 16 elements from d on: row t's in the low halves, row t + 1's in the high ones.
HWY_INLINE __m512i row_pair(const RowsOf<Bf16>& a, std::int64_t t, std::int64_t d) {
  const auto row = [&](std::int64_t i) {
    return i < a.rows
               ? _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(a.at + i * a.stride + d)))
               : _mm512_setzero_si512();
  };
  return _mm512_or_si512(row(t), _mm512_slli_epi32(row(t + 1), 16));
}

/// dst [padded / 64, head_dim, 64]: the transpose of each block of 64 rows, a first factor.
inline void pack_transposed(const RowsOf<float>& a, float* dst) { pack_transposed_words(a, dst); }
inline void pack_transposed(const RowsOf<Bf16>& a, Bf16* dst) {
  for (std::int64_t t = 0; t < a.padded; t += 32)
    for (std::int64_t d = 0; d < a.head_dim; d += 16) {
      __m512i r[16];
      for (std::int64_t i = 0; i < 16; ++i) r[i] = row_pair(a, t + 2 * i, d);
      transpose(r);
      Bf16* const to = dst + (t / block * a.head_dim + d) * block + t % block;
      for (std::int64_t i = 0; i < 16; ++i) _mm512_storeu_si512(to + i * block, r[i]);
    }
}

/// dst [words along the rows, head_dim]: pairs of bf16 rows are interleaved, fp32 rows stay as they are.
inline void pack_interleaved(const RowsOf<float>& a, float* dst) { pack_rows(a, dst); }
inline void pack_interleaved(const RowsOf<Bf16>& a, Bf16* dst) {
  for (std::int64_t t = 0; t < a.padded; t += 2)
    for (std::int64_t d = 0; d < a.head_dim; d += 16)
      _mm512_storeu_si512(dst + t * a.head_dim + 2 * d, row_pair(a, t, d));
}

/// Stores two rows of 16 values for the second factor of a product. They become two fp32 rows, `stride` apart, or one
/// row of bf16 pairs.
HWY_INLINE void store_interleaved(float* dst, std::int64_t stride, V first, V second) {
  store(dst, first, width);
  store(dst + stride, second, width);
}
HWY_INLINE __m512i interleaved(V first, V second) {
  alignas(64) static constexpr std::uint16_t in_turns[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                             21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                             11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const __m512i both = (__m512i)_mm512_cvtne2ps_pbh(raw(second), raw(first));
  return _mm512_permutexvar_epi16(_mm512_load_si512(in_turns), both);
}
HWY_INLINE void store_interleaved(Bf16* dst, std::int64_t, V first, V second) {
  _mm512_storeu_si512(dst, interleaved(first, second));
}

/// Adds both rows to sums, as store_interleaved() rounds them.
HWY_INLINE __m512 add_stored(float, __m512 sums, __m512 first, __m512 second) {
  return _mm512_add_ps(sums, _mm512_add_ps(first, second));
}
HWY_INLINE __m512 add_stored(Bf16, __m512 sums, __m512 first, __m512 second) {
  const __m512i ones = _mm512_set1_epi16(0x3f80);
  return multiply_add(Bf16{}, sums, interleaved(vector(first), vector(second)), ones);
}

HWY_INLINE void store_rounded(float* dst, V v) { store(dst, v, width); }
HWY_INLINE void store_rounded(Bf16* dst, V v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst), (__m256i)_mm512_cvtneps_pbh(raw(v)));
}

/// Rows of a result.
template <class T>
struct RowsInto {
  T* at;
  std::int64_t stride;  // elements
  std::int64_t rows, head_dim;
};

/// Writes columns of sums [head_dim, stride] as rows, at most `stride` of them. Each column is multiplied by its
/// factor; there are `stride` factors.
template <class T>
void write_columns(const Sums& sums, const float* factors, const RowsInto<T>& into) {
  const std::int64_t rows = std::min(sums.stride, into.rows);
  for (std::int64_t t = 0; t < rows; t += 16)
    for (std::int64_t d = 0; d < into.head_dim; d += 16) {
      const __m512 factor = _mm512_loadu_ps(factors + t);
      __m512i r[16];
      for (std::int64_t i = 0; i < 16; ++i)
        r[i] = _mm512_castps_si512(_mm512_mul_ps(_mm512_loadu_ps(sums.at + (d + i) * sums.stride + t), factor));
      transpose(r);
      for (std::int64_t i = 0; i < std::min<std::int64_t>(16, rows - t); ++i)
        store_rounded(into.at + (t + i) * into.stride + d, vector(_mm512_castsi512_ps(r[i])));
    }
}
