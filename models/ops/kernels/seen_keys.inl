// Which keys a query sees. Included inside an anonymous namespace after View, Parts and padded().

/// The keys that each query sees: those from `first` to the query itself, except from `gap_begin` up to `gap_end`.
struct SeenKeys {
  std::int32_t *first, *gap_begin, *gap_end;  // [padded]
  bool gaps;

  SeenKeys(Parts& parts, std::int64_t rows, bool has_gaps)
      : first(parts.take<std::int32_t>(rows)),
        gap_begin(parts.take<std::int32_t>(rows)),
        gap_end(parts.take<std::int32_t>(rows)),
        gaps(has_gaps) {}

  /// Padding sees only itself.
  template <class T>
  void copy(const View<T>& view) const {
    const std::int64_t last = view.p.length - 1;
    for (std::int64_t t = 0; t < padded(view.p.length); ++t) {
      first[t] = t <= last ? view.first(t) : static_cast<std::int32_t>(t);
      gap_begin[t] = view.gap(0, t <= last ? t : last);
      gap_end[t] = view.gap(1, t <= last ? t : last);
    }
  }

  /// Whether `count` queries all see all keys of a block.
  bool all(std::int64_t q_begin, std::int64_t count, std::int64_t k_begin) const {
    bool seen = k_begin + block <= q_begin + 1 && first[q_begin + count - 1] <= k_begin;
    for (std::int64_t q = q_begin; gaps && q < q_begin + count; ++q)
      seen &= (gap_end[q] <= k_begin) | (gap_begin[q] >= k_begin + block);
    return seen;
  }
  /// Whether the gaps of `count` queries all hide all keys of a block.
  bool none(std::int64_t q_begin, std::int64_t count, std::int64_t k_begin) const {
    bool hidden = gaps;
    for (std::int64_t q = q_begin; hidden && q < q_begin + count; ++q)
      hidden = (gap_begin[q] <= k_begin) & (gap_end[q] >= k_begin + block);
    return hidden;
  }
};

/// Which of 16 queries see a key.
struct Sight {
  __m512i query, first, gap_begin, gap_end;

  Sight(const SeenKeys& seen, std::int64_t begin)
      : query(_mm512_add_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                               _mm512_set1_epi32(static_cast<int>(begin)))),
        first(_mm512_loadu_si512(seen.first + begin)),
        gap_begin(_mm512_loadu_si512(seen.gap_begin + begin)),
        gap_end(_mm512_loadu_si512(seen.gap_end + begin)) {}
  __mmask16 of(std::int64_t key) const {
    const __m512i number = _mm512_set1_epi32(static_cast<int>(key));
    const __mmask16 hidden = _mm512_cmple_epi32_mask(gap_begin, number) & _mm512_cmpgt_epi32_mask(gap_end, number);
    return _mm512_cmple_epi32_mask(number, query) & _mm512_cmple_epi32_mask(first, number) &
           static_cast<__mmask16>(~hidden);
  }
};
