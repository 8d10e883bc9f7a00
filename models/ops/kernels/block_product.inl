// Small matrix products of AVX-512, on words of 32 bits: one fp32, or two bf16 that are adjacent along the summed
// dimension. Included inside an anonymous namespace after row16.inl.
HWY_INLINE __m512 multiply_add(float, __m512 acc, __m512i a, __m512i b) {
  return _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), acc);
}
HWY_INLINE __m512 multiply_add(Bf16, __m512 acc, __m512i a, __m512i b) {
  return _mm512_dpbf16_ps(acc, (__m512bh)a, (__m512bh)b);
}

struct Words {
  const void* at;
  std::int64_t stride;  // words from row to row
  const std::int32_t* row(std::int64_t i) const { return static_cast<const std::int32_t*>(at) + i * stride; }
};

struct Sums {
  float* at;
  std::int64_t stride;
};

// Four rows by `vectors` times 16 columns.
template <class T, int vectors, bool add>
HWY_INLINE void product_4(const Words& a, const Words& b, const Sums& c, std::int64_t words) {
  __m512 acc[4][vectors];
  for (int r = 0; r < 4; ++r)
    for (int v = 0; v < vectors; ++v)
      acc[r][v] = add ? _mm512_loadu_ps(c.at + r * c.stride + 16 * v) : _mm512_setzero_ps();
  const std::int32_t* row_b = b.row(0);
  const std::int32_t *a0 = a.row(0), *a1 = a.row(1), *a2 = a.row(2), *a3 = a.row(3);
  for (std::int64_t k = 0; k < words; ++k, row_b += b.stride) {
    __m512i vb[vectors];
    for (int v = 0; v < vectors; ++v) vb[v] = _mm512_loadu_si512(row_b + 16 * v);
    const __m512i va[4] = {_mm512_set1_epi32(a0[k]), _mm512_set1_epi32(a1[k]), _mm512_set1_epi32(a2[k]),
                           _mm512_set1_epi32(a3[k])};
    for (int r = 0; r < 4; ++r)
      for (int v = 0; v < vectors; ++v) acc[r][v] = multiply_add(T{}, acc[r][v], va[r], vb[v]);
  }
  for (int r = 0; r < 4; ++r)
    for (int v = 0; v < vectors; ++v) _mm512_storeu_ps(c.at + r * c.stride + 16 * v, acc[r][v]);
}

struct Size {
  std::int64_t rows, columns, words;  // rows a multiple of 4, columns of 16
};

/// Products on vector registers.
struct VectorProducts {
  /// c [rows, columns] = (or, with add, +=) sum over words of a [rows, words] * b [words, columns].
  template <class T, bool add>
  static void product(const Words& a, const Words& b, const Sums& c, const Size& size);
};

template <class T, bool add>
void VectorProducts::product(const Words& a, const Words& b, const Sums& c, const Size& size) {
  for (std::int64_t n = 0; n < size.columns;) {
    const std::int64_t left = size.columns - n;
    const Words columns{b.row(0) + n, b.stride};
    for (std::int64_t m = 0; m < size.rows; m += 4) {
      const Words rows{a.row(m), a.stride};
      const Sums sums{c.at + m * c.stride + n, c.stride};
      if (left >= 64)
        product_4<T, 4, add>(rows, columns, sums, size.words);
      else if (left >= 48)
        product_4<T, 3, add>(rows, columns, sums, size.words);
      else if (left >= 32)
        product_4<T, 2, add>(rows, columns, sums, size.words);
      else
        product_4<T, 1, add>(rows, columns, sums, size.words);
    }
    n += left >= 64 ? 64 : left / 16 * 16;
  }
}
