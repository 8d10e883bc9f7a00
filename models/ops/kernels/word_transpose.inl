// A transpose of AVX-512. Included inside an anonymous namespace.

/// Transposes 16 rows of 16 words.
inline void transpose(__m512i (&r)[16]) {
  __m512i t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
  for (int i = 0; i < 16; i += 4)
    for (int h = 0; h < 2; ++h) {
      r[i + 2 * h] = _mm512_unpacklo_epi64(t[i + h], t[i + 2 + h]);
      r[i + 2 * h + 1] = _mm512_unpackhi_epi64(t[i + h], t[i + 2 + h]);
    }
  for (int i = 0; i < 16; i += 8)
    for (int c = 0; c < 4; ++c) {
      t[i + c] = _mm512_shuffle_i32x4(r[i + c], r[i + 4 + c], 0x88);
      t[i + 4 + c] = _mm512_shuffle_i32x4(r[i + c], r[i + 4 + c], 0xdd);
    }
  for (int c = 0; c < 8; ++c) {
    r[c] = _mm512_shuffle_i32x4(t[c], t[8 + c], 0x88);
    r[c + 8] = _mm512_shuffle_i32x4(t[c], t[8 + c], 0xdd);
  }
}
