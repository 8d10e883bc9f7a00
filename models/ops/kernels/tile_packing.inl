// Packs factors of matrix products into AMX tiles. Included inside an anonymous namespace.
//
// A factor has lanes: the rows of the first factor, or the columns of the second. A panel holds 32 lanes. It consists
// of steps of 32 terms. A step has two tiles, for lanes 0 to 15 and 16 to 31. A split factor has two more tiles a step,
// for what the first two leave. The first factor's tiles hold a row for each lane. The second factor's tiles hold a row
// for each pair of terms. Missing lanes and terms are zero.
constexpr Count panel_lanes = 32, step_terms = 32, tile_bytes = 1024;

Count parts_of(Count all, Count most) { return (all + most - 1) / most; }
Count rounded_up(Count count, Count multiple) { return parts_of(count, multiple) * multiple; }

/// A mask of the first `count` lanes; `count` may be negative or more than there are.
template <class Mask>
Mask first_lanes(Count count) {
  constexpr Count bits = 8 * sizeof(Mask);
  if (count >= bits) return static_cast<Mask>(~Mask{0});
  return count <= 0 ? Mask{0} : static_cast<Mask>((Mask{1} << count) - 1);
}

inline __m512 widened(__m256i x) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16)); }
inline __m512 widened_low(__m512i x) { return widened(_mm512_castsi512_si256(x)); }
inline __m512 widened_high(__m512i x) { return widened(_mm512_extracti64x4_epi64(x, 1)); }
inline __m512i rounded(__m512 low, __m512 high) { return (__m512i)_mm512_cvtne2ps_pbh(high, low); }

/// Loads 32 adjacent numbers as bf16; with `rest`, what rounding them leaves.
template <bool rest>
__m512i load_32(const std::uint16_t* at, __mmask32 mask) {
  return _mm512_maskz_loadu_epi16(mask, at);
}
template <bool rest>
__m512i load_32(const float* at, __mmask32 mask) {
  const __m512 low = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), at);
  const __m512 high = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16), at + 16);
  const __m512i nearest = rounded(low, high);
  if constexpr (!rest) return nearest;
  return rounded(_mm512_sub_ps(low, widened_low(nearest)), _mm512_sub_ps(high, widened_high(nearest)));
}

template <class T>
struct Lanes {
  const T* at;
  Count stride, term_stride;  // one of them is 1
  Count count, terms;

  Lanes from(Count lane, Count term) const {
    return {at + lane * stride + term * term_stride, stride, term_stride, count - lane, terms - term};
  }
};

/// Packs one tile of the step at `from`: lanes 0 to 15, or 16 to 31. With `lane_rows` its rows are lanes.
template <class T, bool lane_rows, bool rest>
void pack_tile(const Lanes<T>& from, Count half, char* to) {
  __m512i r[16];
  const bool adjacent_terms = from.term_stride == 1;
  if (adjacent_terms) {
    const __mmask32 terms = first_lanes<__mmask32>(from.terms);
    for (Count i = 0; i < 16; ++i) {
      const Count lane = 16 * half + i;
      r[i] = load_32<rest>(from.at + lane * from.stride, lane < from.count ? terms : 0);
    }
  } else {
    // Pairs of terms, from two rows of 32 lanes.
    alignas(64) static constexpr std::uint16_t pairs[2][32] = {
        {0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
         8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47},
        {16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55,
         24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63}};
    const __m512i order = _mm512_load_si512(pairs[half]);
    const __mmask32 lanes = first_lanes<__mmask32>(from.count);
    const auto row = [&](Count term) {
      return load_32<rest>(from.at + term * from.term_stride, term < from.terms ? lanes : 0);
    };
    for (Count p = 0; p < 16; ++p) r[p] = _mm512_permutex2var_epi16(row(2 * p), order, row(2 * p + 1));
  }
  if (adjacent_terms != lane_rows) transpose(r);
  for (Count i = 0; i < 16; ++i) _mm512_store_si512(to + 64 * i, r[i]);
}

template <class T, bool lane_rows, int pieces>
void pack_step(const Lanes<T>& from, char* to) {
  for (Count half = 0; half < 2; ++half) {
    pack_tile<T, lane_rows, false>(from, half, to + half * tile_bytes);
    if constexpr (pieces == 2) pack_tile<T, lane_rows, true>(from, half, to + (2 + half) * tile_bytes);
  }
}

/// Packs all lanes and terms, one panel after the other. Reads memory in the order of its addresses.
template <class T, bool lane_rows, int pieces>
void pack(const Lanes<T>& from, char* to) {
  const Count panels = parts_of(from.count, panel_lanes), steps = parts_of(from.terms, step_terms);
  const auto one = [&](Count panel, Count step) {
    pack_step<T, lane_rows, pieces>(from.from(panel * panel_lanes, step * step_terms),
                                    to + (panel * steps + step) * 2 * pieces * tile_bytes);
  };
  if (from.term_stride == 1) {
    for (Count panel = 0; panel < panels; ++panel)
      for (Count step = 0; step < steps; ++step) one(panel, step);
  } else {
    for (Count step = 0; step < steps; ++step)
      for (Count panel = 0; panel < panels; ++panel) one(panel, step);
  }
}
