// Compiled for AVX-512 with bf16 and AMX (see CMakeLists.txt); other processors get tile_matrix_absent.cpp. Only
// has_tile_products() may run before the processor has been checked.
#include "models/ops/kernels/tile_matrix.h"

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace zero::kernels {
namespace {

using Count = std::int64_t;

#include "models/ops/kernels/tile_setting.inl"

#include "models/ops/kernels/word_transpose.inl"

#include "models/ops/kernels/tile_packing.inl"

constexpr Count most_terms = 1024;         // of a chunk
constexpr Count second_bytes = 512 << 10;  // of a packed block of b: half of an L2 cache that two threads share
constexpr Count first_bytes = 4 << 20;     // of a packed block of a, unless that has few rows
constexpr Count fewest_first_rows = 512;   // they share the cost of packing b
constexpr Count waiting_bytes = 4 << 20;   // of sums that wait for the next chunk
constexpr Count side = 32, block_size = side * side;  // of a block of sums

Count pieces_of(TileForm form) { return form == TileForm::split ? 2 : 1; }

/// `all` in equal parts of at most `most`, each a multiple of `multiple`; the last may be smaller.
Count balanced(Count all, Count most, Count multiple) {
  return rounded_up(parts_of(all, parts_of(all, std::max(most / multiple * multiple, multiple))), multiple);
}

/// The sizes of the blocks in which a product is computed.
struct Blocking {
  Count terms;       // of a chunk; depends only on the number of terms and the form
  Count lane_bytes;  // of a packed lane of a chunk
  bool one_chunk;
  Count rows;     // of a that are packed at a time
  Count group;    // columns whose sums wait while the chunks pass
  Count columns;  // of b that are packed at a time, within a group

  explicit Blocking(const TileProduct& p)
      : terms(balanced(p.terms, most_terms / pieces_of(p.form), step_terms)),
        lane_bytes(terms * 2 * pieces_of(p.form)),
        one_chunk(terms >= p.terms) {
    rows = balanced(p.rows, std::max(fewest_first_rows, first_bytes / lane_bytes), side);
    const Count all = rounded_up(p.columns, side);
    group = one_chunk ? all : std::min(all, balanced(p.columns, waiting_bytes / (4 * rows), side));
    columns = balanced(std::min(group, p.columns), second_bytes / lane_bytes, side);
  }
};

/// The workspace: packed a, then packed b and the sums, which begin here.
struct Parts {
  Count second, sums, bytes;

  explicit Parts(const Blocking& block)
      : second(block.rows * block.lane_bytes),
        sums(second + block.columns * block.lane_bytes),
        bytes(sums + 4 * (block.one_chunk ? 2 * block_size : block.rows * block.group)) {}
};

/// A block of sums on its way to the result.
class FinishedBlock {
 public:
  FinishedBlock() = default;
  FinishedBlock(const TileProduct& product, Count row, Count column, const float* sums)
      : product_(&product),
        row_(row),
        column_(column),
        rows_(std::min(side, product.rows - row)),
        columns_(std::min(side, product.columns - column)),
        sums_(sums) {}

  /// Writes the block unless it has been written.
  void write() {
    if (!product_) return;
    if (product_->wide)
      product_->add ? write_as<float, true>() : write_as<float, false>();
    else
      product_->add ? write_as<std::uint16_t, true>() : write_as<std::uint16_t, false>();
    product_ = nullptr;
  }

 private:
  template <class T, bool add>
  void write_as() const {
    T* out = static_cast<T*>(product_->out) + row_ * product_->out_stride + column_;
    const __mmask32 mask = first_lanes<__mmask32>(columns_);
    for (Count r = 0; r < rows_; ++r, out += product_->out_stride)
      write_row<add>(_mm512_load_ps(sums_ + r * side), _mm512_load_ps(sums_ + r * side + 16), mask, out);
  }
  template <bool add>
  static void write_row(__m512 low, __m512 high, __mmask32 mask, float* out) {
    const auto low_mask = static_cast<__mmask16>(mask), high_mask = static_cast<__mmask16>(mask >> 16);
    if constexpr (add) {
      low = _mm512_add_ps(low, _mm512_maskz_loadu_ps(low_mask, out));
      high = _mm512_add_ps(high, _mm512_maskz_loadu_ps(high_mask, out + 16));
    }
    _mm512_mask_storeu_ps(out, low_mask, low);
    _mm512_mask_storeu_ps(out + 16, high_mask, high);
  }
  template <bool add>
  static void write_row(__m512 low, __m512 high, __mmask32 mask, std::uint16_t* out) {
    if constexpr (add) {
      const __m512i before = _mm512_maskz_loadu_epi16(mask, out);
      low = _mm512_add_ps(low, widened_low(before));
      high = _mm512_add_ps(high, widened_high(before));
    }
    _mm512_mask_storeu_epi16(out, mask, rounded(low, high));
  }

  const TileProduct* product_ = nullptr;
  Count row_ = 0, column_ = 0, rows_ = 0, columns_ = 0;
  const float* sums_ = nullptr;
};

// Tiles 0 to 3 hold the sums. Tiles 4 and 5 hold rows of a, tiles 6 and 7 hold columns of b.
inline void add_step(const char* a, const char* b) {
  _tile_loadd(4, a, 64);
  _tile_loadd(6, b, 64);
  _tile_dpbf16ps(0, 4, 6);
  _tile_loadd(7, b + tile_bytes, 64);
  _tile_dpbf16ps(1, 4, 7);
  _tile_loadd(5, a + tile_bytes, 64);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
}

/// Two packed panels.
struct Panels {
  const char *a, *b;
  Count steps;
};

/// sums [32, 32] = the panels' product; with `add`, sums += it. Writes an earlier block meanwhile.
template <int pieces>
void multiply_panels(const Panels& panels, float* sums, bool add, FinishedBlock& earlier) {
  constexpr Count step_bytes = 2 * pieces * tile_bytes, row_bytes = side * 4, begin_writing = 4;
  float* const below = sums + block_size / 2;
  asm volatile("" ::: "memory");
  if (add) {
    _tile_loadd(0, sums, row_bytes);
    _tile_loadd(1, sums + 16, row_bytes);
    _tile_loadd(2, below, row_bytes);
    _tile_loadd(3, below + 16, row_bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const char *a = panels.a, *b = panels.b;
  for (Count step = 0; step < panels.steps; ++step, a += step_bytes, b += step_bytes) {
    add_step(a, b);
    if constexpr (pieces == 2) {
      add_step(a, b + 2 * tile_bytes);
      add_step(a + 2 * tile_bytes, b);
    }
    if (step == begin_writing) earlier.write();
  }
  earlier.write();
  _tile_stored(0, sums, row_bytes);
  _tile_stored(1, sums + 16, row_bytes);
  _tile_stored(2, below, row_bytes);
  _tile_stored(3, below + 16, row_bytes);
  asm volatile("" ::: "memory");
}

/// A range of a dimension.
struct Range {
  Count begin, end;
  Range(Count begin_, Count size, Count all) : begin(begin_), end(std::min(begin_ + size, all)) {}
  Count size() const { return end - begin; }
};

template <class T, int pieces>
class TileRun {
 public:
  TileRun(const TileProduct& product, void* workspace)
      : p_(product), block_(product), first_(static_cast<char*>(workspace)) {
    const Parts parts(block_);
    second_ = first_ + parts.second;
    sums_ = reinterpret_cast<float*>(first_ + parts.sums);
  }

  void multiply() {
    for (Count row = 0; row < p_.rows; row += block_.rows)
      for (Count column = 0; column < p_.columns; column += block_.group)
        for (Count term = 0; term < p_.terms; term += block_.terms)
          multiply_group({row, block_.rows, p_.rows}, {column, block_.group, p_.columns},
                         {term, block_.terms, p_.terms});
    finished_.write();
  }

 private:
  void multiply_group(const Range& rows, const Range& columns, const Range& terms) {
    pack<T, true, pieces>(lanes(p_.a.at, p_.a.row_stride, p_.a.column_stride, rows, terms), first_);
    for (Count column = columns.begin; column < columns.end; column += block_.columns) {
      const Range some(column, block_.columns, columns.end);
      pack<T, false, pieces>(lanes(p_.b.at, p_.b.column_stride, p_.b.row_stride, some, terms), second_);
      multiply_block(rows, some, columns.begin, terms);
    }
    if (!block_.one_chunk) finished_.write();  // the next chunk or group overwrites the sums
  }

  static Lanes<T> lanes(const void* at, Count stride, Count term_stride, const Range& some, const Range& terms) {
    return {static_cast<const T*>(at) + some.begin * stride + terms.begin * term_stride, stride, term_stride,
            some.size(), terms.size()};
  }

  void multiply_block(const Range& rows, const Range& columns, Count group, const Range& terms) {
    const Count steps = parts_of(terms.size(), step_terms), panel_bytes = steps * 2 * pieces * tile_bytes;
    for (Count row = rows.begin; row < rows.end; row += side)
      for (Count column = columns.begin; column < columns.end; column += side) {
        const Count i = (row - rows.begin) / side, j = (column - columns.begin) / side;
        float* const sums = block_.one_chunk ? other_block() : waiting_block(i, (column - group) / side);
        multiply_panels<pieces>({first_ + i * panel_bytes, second_ + j * panel_bytes, steps}, sums, terms.begin > 0,
                                finished_);
        if (terms.end == p_.terms) finished_ = FinishedBlock(p_, row, column, sums);
      }
  }

  // Two blocks in turn: one is written while the other is computed.
  float* other_block() { return sums_ + (turn_++ % 2) * block_size; }
  float* waiting_block(Count i, Count j) { return sums_ + (i * block_.group / side + j) * block_size; }

  const TileProduct& p_;
  const Blocking block_;
  char *first_, *second_;  // packed a and b
  float* sums_;
  FinishedBlock finished_;
  Count turn_ = 0;
};

}  // namespace

bool has_tile_products() {
  return has_tiles() && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw");
}

std::size_t tile_workspace_bytes(const TileProduct& product) {
  return static_cast<std::size_t>(Parts(Blocking(product)).bytes);
}

void tile_multiply(const TileProduct& product, void* workspace) {
  const TileSetting tiles;
  switch (product.form) {
    case TileForm::bf16:
      return TileRun<std::uint16_t, 1>(product, workspace).multiply();
    case TileForm::rounded:
      return TileRun<float, 1>(product, workspace).multiply();
    case TileForm::split:
      return TileRun<float, 2>(product, workspace).multiply();
  }
}

}  // namespace zero::kernels
