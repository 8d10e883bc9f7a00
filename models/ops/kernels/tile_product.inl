// Small matrix products of bf16 on AMX tiles of 16 rows by 16 words. Included inside an anonymous namespace after
// tile_setting.inl and block_product.inl, whose layouts it shares.

/// Products on tiles, which an object sets up.
struct TileProducts : TileSetting {
  static constexpr std::int64_t multiple = 32;  // of rows and columns; words are multiples of 16

  /// The same as VectorProducts::product.
  template <class T, bool add>
  static void product(const Words& a, const Words& b, const Sums& c, const Size& size);
};

// Tiles 0 to 3 hold 32 rows by 32 columns of sums. Tiles 4 and 5 hold rows of a, tiles 6 and 7 hold columns of b.
template <bool add>
HWY_INLINE void tile_product(const Words& a, const Words& b, const Sums& c, std::int64_t words) {
  const std::int64_t stride_a = a.stride * 4, stride_b = b.stride * 4, stride_c = c.stride * 4;
  float* const below = c.at + 16 * c.stride;
  asm volatile("" ::: "memory");
  if constexpr (add) {
    _tile_loadd(0, c.at, stride_c);
    _tile_loadd(1, c.at + 16, stride_c);
    _tile_loadd(2, below, stride_c);
    _tile_loadd(3, below + 16, stride_c);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (std::int64_t k = 0; k < words; k += 16) {
    _tile_loadd(4, a.row(0) + k, stride_a);
    _tile_loadd(6, b.row(k), stride_b);
    _tile_loadd(7, b.row(k) + 16, stride_b);
    _tile_loadd(5, a.row(16) + k, stride_a);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c.at, stride_c);
  _tile_stored(1, c.at + 16, stride_c);
  _tile_stored(2, below, stride_c);
  _tile_stored(3, below + 16, stride_c);
  asm volatile("" ::: "memory");
}

template <class T, bool add>
void TileProducts::product(const Words& a, const Words& b, const Sums& c, const Size& size) {
  for (std::int64_t n = 0; n < size.columns; n += 32)
    for (std::int64_t m = 0; m < size.rows; m += 32)
      tile_product<add>({a.row(m), a.stride}, {b.row(0) + n, b.stride}, {c.at + m * c.stride + n, c.stride},
                        size.words);
}
