// The draws of a block's dropout, 16 queries at a time: base/philox.h with one query to a lane. Included inside an
// anonymous namespace of AVX-512.
struct Products16 {
  __m512i low, high;
};
HWY_INLINE Products16 product_of_words(__m512i x, __m512i factor) {
  constexpr __mmask16 odd_lanes = 0xAAAA;
  const __m512i even = _mm512_mul_epu32(x, factor), odd = _mm512_mul_epu32(_mm512_srli_epi64(x, 32), factor);
  return {_mm512_mask_blend_epi32(odd_lanes, even, _mm512_slli_epi64(odd, 32)),
          _mm512_mask_blend_epi32(odd_lanes, _mm512_srli_epi64(even, 32), odd)};
}

/// Four words of one counter for each of 16 queries.
struct Words16 {
  __m512i c[4];
};

HWY_INLINE void philox_round(Words16& w, std::uint32_t k0, std::uint32_t k1) {
  constexpr int xor_of_three = 0x96;
  const Products16 p0 = product_of_words(w.c[0], _mm512_set1_epi32(static_cast<int>(0xD2511F53u))),
                   p1 = product_of_words(w.c[2], _mm512_set1_epi32(static_cast<int>(0xCD9E8D57u)));
  w = {{_mm512_ternarylogic_epi32(p1.high, w.c[1], _mm512_set1_epi32(static_cast<int>(k0)), xor_of_three), p1.low,
        _mm512_ternarylogic_epi32(p0.high, w.c[3], _mm512_set1_epi32(static_cast<int>(k1)), xor_of_three), p0.low}};
}

/// The head whose probabilities are dropped.
struct DroppedHead {
  const AttentionDrops& drops;
  std::int64_t sample, head;
};

/// Which of a block's keys each of 16 queries keeps.
struct KeptKeys {
  __mmask16 by[block];

  KeptKeys(const DroppedHead& of, std::int64_t query, std::int64_t k_begin) {
    constexpr int at_once = 4;  // counters, so that the processor need not wait for each product
    const __m512i places = _mm512_add_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                                            _mm512_set1_epi32(static_cast<int>(query)));
    const __m512i threshold = _mm512_set1_epi32(static_cast<int>(of.drops.threshold)),
                  sample = _mm512_set1_epi32(static_cast<int>(of.sample));
    for (std::int64_t group = 0; group < block / 32; ++group)
      for (std::int64_t lane = 0; lane < 8; lane += at_once) {
        const std::uint64_t counter =
            (static_cast<std::uint64_t>(of.head) << 30) + static_cast<std::uint64_t>(k_begin / 4 + group * 8 + lane);
        Words16 words[at_once];
        for (int i = 0; i < at_once; ++i)
          words[i] = {{_mm512_set1_epi32(static_cast<int>(counter + std::uint64_t(i))),
                       _mm512_set1_epi32(static_cast<int>(counter >> 32)), places, sample}};
        auto k0 = static_cast<std::uint32_t>(of.drops.seed), k1 = static_cast<std::uint32_t>(of.drops.seed >> 32);
        for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u)
          for (Words16& each : words) philox_round(each, k0, k1);
        for (int i = 0; i < at_once; ++i)
          for (int w = 0; w < 4; ++w)
            by[group * 32 + w * 8 + lane + i] = _mm512_cmpge_epu32_mask(words[i].c[w], threshold);
      }
  }
};
