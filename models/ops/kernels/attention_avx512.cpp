// Compiled for AVX-512 with bf16 (see CMakeLists.txt); other processors get attention_absent.cpp. Nothing in this file
// may run before the processor has been checked.
#include "models/ops/kernels/attention_kernels.h"

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <initializer_list>
#include <optional>

#include "base/simd/targets.h"

#include "models/ops/kernels/row16.inl"

namespace zero::kernels {
namespace {

using namespace HWY_NAMESPACE;

HWY_INLINE __m512 raw(V v) { return v.part[0].raw; }
HWY_INLINE V vector(__m512 raw) { return {{hn::Vec<Floats>{raw}}}; }

constexpr std::int64_t block = 64;

#include "models/ops/kernels/block_product.inl"

#include "models/ops/kernels/tile_setting.inl"

#include "models/ops/kernels/tile_product.inl"

#include "models/ops/kernels/block_packing.inl"

#include "models/ops/kernels/block_dropout.inl"

std::int64_t padded(std::int64_t length) { return (length + block - 1) / block * block; }

/// Allocates 64-byte aligned parts of the workspace.
class Parts {
 public:
  explicit Parts(void* workspace) : next_(reinterpret_cast<std::uintptr_t>(workspace)) {}
  template <class T>
  T* take(std::int64_t count) {
    T* mine = reinterpret_cast<T*>(next_);
    next_ += (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return mine;
  }
  std::uintptr_t next() const { return next_; }  // without a workspace: the bytes allocated

 private:
  std::uintptr_t next_;
};

/// The memory for one batch row and one kv head.
template <class T>
struct View {
  const AttentionProblem<T>& p;
  std::int64_t row, kv_head;

  std::int64_t group() const { return p.heads / p.kv_heads; }
  std::int64_t width_qkv() const { return (p.heads + 2 * p.kv_heads) * p.head_dim; }
  std::int64_t width_out() const { return p.heads * p.head_dim; }
  std::int64_t at_q(std::int64_t head) const { return row * p.length * width_qkv() + head * p.head_dim; }
  std::int64_t at_k() const { return at_q(p.heads + kv_head); }
  std::int64_t at_v() const { return at_q(p.heads + p.kv_heads + kv_head); }
  std::int64_t at_out(std::int64_t head) const { return row * p.length * width_out() + head * p.head_dim; }
  float* lse(std::int64_t head) const { return p.lse + (row * p.heads + head) * p.length; }
  DroppedHead dropped(std::int64_t head) const {
    return {p.drops, p.drops.first_sample + row, p.drops.first_head + head};
  }
  std::int32_t first(std::int64_t t) const { return p.first ? p.first[row * p.length + t] : 0; }
  std::int32_t gap(std::int64_t end, std::int64_t t) const {
    return p.gaps ? p.gaps[(end * p.rows + row) * p.length + t] : 0;
  }
  RowsOf<T> rows_qkv(std::int64_t at) const {
    return {p.qkv + at, width_qkv(), p.length, padded(p.length), p.head_dim};
  }
  RowsOf<T> rows_out(const T* base, std::int64_t head) const {
    return {base + at_out(head), width_out(), p.length, padded(p.length), p.head_dim};
  }
};

/// 2^x within 2 units in the last place (the polynomial of Cephes' exp2f); 0 below the smallest number, NaN stays NaN.
HWY_INLINE __m512 power_of_2(__m512 x) {
  const __m512 whole = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 rest = _mm512_sub_ps(x, whole);
  __m512 p = _mm512_set1_ps(1.535336188319500e-4f);
  for (const float c : {1.339887440266574e-3f, 9.618437357674640e-3f, 5.550332471162809e-2f, 2.402264791363012e-1f,
                        6.931472028550421e-1f, 1.0f})
    p = _mm512_fmadd_ps(p, rest, _mm512_set1_ps(c));
  return _mm512_scalef_ps(p, whole);
}

constexpr float log2_e = 1.44269504088896341f, ln_2 = 0.693147180559945309f;

/// The keys that each query sees: those from `first` to the query itself, except from `gap_begin` up to `gap_end`.
struct SeenKeys {
  std::int32_t *first, *gap_begin, *gap_end;  // [padded]

  SeenKeys(Parts& parts, std::int64_t rows)
      : first(parts.take<std::int32_t>(rows)),
        gap_begin(parts.take<std::int32_t>(rows)),
        gap_end(parts.take<std::int32_t>(rows)) {}

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

  /// Whether all queries of a block see all keys of another.
  bool all(std::int64_t q_begin, std::int64_t k_begin) const {
    bool seen = k_begin < q_begin && first[q_begin + block - 1] <= k_begin;
    for (std::int64_t q = q_begin; q < q_begin + block; ++q)
      seen &= (gap_end[q] <= k_begin) | (gap_begin[q] >= k_begin + block);
    return seen;
  }
  /// Whether the gaps of all queries of a block hide all keys of another.
  bool none(std::int64_t q_begin, std::int64_t k_begin) const {
    bool hidden = true;
    for (std::int64_t q = q_begin; q < q_begin + block; ++q)
      hidden &= (gap_begin[q] <= k_begin) & (gap_end[q] >= k_begin + block);
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

/// Writes column `t` of a block [rows, 64] of sums, times a factor, as one row of T.
template <class T>
HWY_INLINE void write_column(const float* sums, std::int64_t t, std::int64_t rows, float factor, T* out) {
  float column[256];
  for (std::int64_t d = 0; d < rows; ++d) column[d] = sums[d * block + t] * factor;
  for (std::int64_t d = 0; d < rows; d += 16) store_rounded(out + d, load(column + d, width));
}

template <class T>
struct ForwardParts {
  explicit ForwardParts(void* workspace, std::int64_t length, std::int64_t head_dim)
      : parts(workspace), seen(parts, padded(length)) {
    const std::int64_t all = padded(length) * head_dim;
    for (T** part : {&k, &v_transposed}) *part = parts.template take<T>(all);
    q_transposed = parts.take<T>(block * head_dim);
    p = parts.take<T>(block * block);
    scores = parts.take<float>(block * block);
    out = parts.take<float>(block * head_dim);
    for (float** part : {&top, &total}) *part = parts.template take<float>(block);
  }
  Parts parts;
  SeenKeys seen;
  T *k, *v_transposed;  // [padded, head_dim], [blocks, head_dim, 64]
  T *q_transposed, *p;  // [words of head_dim, 64], [words of 64 keys, 64 queries]
  float *scores, *out;  // [64 keys, 64 queries], [head_dim, 64 queries]
  float *top, *total;   // [64]: largest scaled score so far, times log2(e); sum of exponentials below it
};

/// Converts the scores of 16 queries to exponentials and rescales their sums so far to the new maximum. Dropped
/// exponentials count in `total`, as in a softmax before dropout.
template <class T, bool drops>
HWY_INLINE void softmax_columns(const ForwardParts<T>& w, std::int64_t q_begin, std::int64_t k_begin, std::int64_t c,
                                float scale, std::int64_t head_dim, const DroppedHead& dropped) {
  constexpr float unseen = -1e30f;
  float* const scores = w.scores + c;
  const auto score = [scores](std::int64_t r) { return _mm512_loadu_ps(scores + r * block); };
  __m512 most[4];
  for (int i = 0; i < 4; ++i) most[i] = _mm512_set1_ps(unseen);
  if (!w.seen.all(q_begin, k_begin)) {
    const Sight sight(w.seen, q_begin + c);
    for (std::int64_t r = 0; r < block; ++r)
      _mm512_storeu_ps(scores + r * block, _mm512_mask_mov_ps(_mm512_set1_ps(unseen), sight.of(k_begin + r), score(r)));
  }
  for (std::int64_t r = 0; r < block; r += 4)
    for (int i = 0; i < 4; ++i) most[i] = _mm512_max_ps(most[i], score(r + i));
  const __m512 found = _mm512_max_ps(_mm512_max_ps(most[0], most[1]), _mm512_max_ps(most[2], most[3]));
  const __m512 factor = _mm512_set1_ps(scale * log2_e), before = _mm512_loadu_ps(w.top + c);
  const __m512 top = _mm512_max_ps(before, _mm512_mul_ps(found, factor));
  __m512 sums[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
  std::optional<KeptKeys> kept;
  if constexpr (drops) kept.emplace(dropped, q_begin + c, k_begin);
  for (std::int64_t r = 0; r < block; r += 2) {
    __m512 e[2];
    for (int i = 0; i < 2; ++i) {
      e[i] = power_of_2(_mm512_fmsub_ps(score(r + i), factor, top));
      sums[i] = _mm512_add_ps(sums[i], e[i]);
      if constexpr (drops) e[i] = _mm512_maskz_mul_ps(kept->by[r + i], e[i], _mm512_set1_ps(dropped.drops.kept));
    }
    store_interleaved(w.p + r * block + (sizeof(T) == 2 ? 2 * c : c), block, vector(e[0]), vector(e[1]));
  }
  const __m512 shrink = power_of_2(_mm512_sub_ps(before, top));
  _mm512_storeu_ps(w.top + c, top);
  _mm512_storeu_ps(w.total + c, _mm512_fmadd_ps(_mm512_loadu_ps(w.total + c), shrink, _mm512_add_ps(sums[0], sums[1])));
  if (_mm512_cmpneq_ps_mask(shrink, _mm512_set1_ps(1)) == 0) return;
  for (std::int64_t d = 0; d < head_dim; ++d) {
    float* const out = w.out + d * block + c;
    _mm512_storeu_ps(out, _mm512_mul_ps(_mm512_loadu_ps(out), shrink));
  }
}

template <class Products, class T>
void forward_block(const View<T>& view, const ForwardParts<T>& w, std::int64_t head, std::int64_t q_begin) {
  const auto& p = view.p;
  const std::int64_t D = p.head_dim, rows = p.length - q_begin < block ? p.length - q_begin : block;
  const std::int64_t per_word = 4 / static_cast<std::int64_t>(sizeof(T)), words_d = D / per_word,
                     words_block = block / per_word;
  constexpr float lowest_top = -1e20f;  // far above an unseen score, so that its exponential is 0
  pack_transposed<std::int32_t, T>(
      {p.qkv + view.at_q(head) + q_begin * view.width_qkv(), view.width_qkv(), rows, block, D},
      reinterpret_cast<std::int32_t*>(w.q_transposed));
  __builtin_memset(w.out, 0, static_cast<std::size_t>(block * D) * 4);
  for (std::int64_t r = 0; r < block; ++r) w.top[r] = lowest_top, w.total[r] = 0;

  for (std::int64_t k_begin = w.seen.first[q_begin] / block * block; k_begin <= q_begin; k_begin += block) {
    if (w.seen.none(q_begin, k_begin)) continue;
    Products::template product<T, false>({w.k + k_begin * D, words_d}, {w.q_transposed, block}, {w.scores, block},
                                         {block, block, words_d});
    const auto softmax = p.drops.threshold ? softmax_columns<T, true> : softmax_columns<T, false>;
    for (std::int64_t c = 0; c < block; c += 16) softmax(w, q_begin, k_begin, c, p.scale, D, view.dropped(head));
    Products::template product<T, true>({w.v_transposed + k_begin * D, words_block}, {w.p, block}, {w.out, block},
                                        {D, block, words_block});
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    write_column(w.out, r, D, 1.0f / w.total[r], p.out + view.at_out(head) + (q_begin + r) * view.width_out());
    view.lse(head)[q_begin + r] = w.top[r] * ln_2 + __builtin_logf(w.total[r]);
  }
}

template <class Products, class T>
void forward_by(const AttentionProblem<T>& problem, std::int64_t row, std::int64_t kv_head, void* workspace) {
  [[maybe_unused]] const Products setting;
  const View<T> view{problem, row, kv_head};
  const ForwardParts<T> w(workspace, problem.length, problem.head_dim);
  pack_rows(view.rows_qkv(view.at_k()), w.k);
  pack_transposed(view.rows_qkv(view.at_v()), w.v_transposed);
  w.seen.copy(view);
  for (std::int64_t g = 0; g < view.group(); ++g)
    for (std::int64_t q_begin = 0; q_begin < problem.length; q_begin += block)
      forward_block<Products>(view, w, kv_head * view.group() + g, q_begin);
}

template <class T>
struct BackwardParts {
  explicit BackwardParts(void* workspace, std::int64_t length, std::int64_t head_dim)
      : parts(workspace), seen(parts, padded(length)) {
    const std::int64_t rows = padded(length), all = rows * head_dim;
    for (T** part : {&k, &v, &k_transposed, &q, &q_transposed, &dout, &dout_transposed})
      *part = parts.template take<T>(all);
    for (float** part : {&dq_transposed, &dk, &dv}) *part = parts.template take<float>(all);
    for (float** part : {&lse, &delta}) *part = parts.template take<float>(rows);
    for (T** part : {&p, &ds, &ds_interleaved}) *part = parts.template take<T>(block * block);
    for (float** part : {&scores, &dp}) *part = parts.template take<float>(block * block);
  }
  Parts parts;
  SeenKeys seen;
  T *k, *v;                           // [padded, head_dim]
  T* k_transposed;                    // [blocks, head_dim, 64], a first factor
  T *q, *dout;                        // [words of padded, head_dim]
  T *q_transposed, *dout_transposed;  // [blocks, words of head_dim, 64]
  float* dq_transposed;               // [blocks, head_dim, 64]
  float *dk, *dv;                     // [padded, head_dim]
  float *lse, *delta;                 // [padded]; lse times log2(e); delta is the sum of dout * out
  T *p, *ds, *ds_interleaved;         // [64 keys, 64 queries]; the last in words along the keys
  float *scores, *dp;                 // [64 keys, 64 queries]
};

/// p = exp(score - lse) and ds = p (dp - delta), for all 64 keys and 16 queries of a block. Dropout's factors multiply
/// dp, and then p for the values' gradient.
template <class T, bool masked, bool drops>
HWY_INLINE void gradient_columns(const BackwardParts<T>& w, std::int64_t q_begin, std::int64_t k_begin, std::int64_t c,
                                 float scale, const DroppedHead& dropped) {
  const __m512 lse = _mm512_loadu_ps(w.lse + q_begin + c), delta = _mm512_loadu_ps(w.delta + q_begin + c);
  const __m512 factor = _mm512_set1_ps(scale * log2_e), slope = _mm512_set1_ps(scale);
  const Sight sight(w.seen, q_begin + c);
  std::optional<KeptKeys> kept;
  if constexpr (drops) kept.emplace(dropped, q_begin + c, k_begin);
  for (std::int64_t r = 0; r < block; r += 2) {
    V ds[2];
    for (int i = 0; i < 2; ++i) {
      const std::int64_t at = (r + i) * block + c;
      __m512 p = power_of_2(_mm512_fmsub_ps(_mm512_loadu_ps(w.scores + at), factor, lse));
      if constexpr (masked) p = _mm512_maskz_mov_ps(sight.of(k_begin + r + i), p);
      __m512 dp = _mm512_loadu_ps(w.dp + at);
      if constexpr (drops) dp = _mm512_maskz_mul_ps(kept->by[r + i], dp, _mm512_set1_ps(dropped.drops.kept));
      ds[i] = vector(_mm512_mul_ps(_mm512_mul_ps(p, slope), _mm512_sub_ps(dp, delta)));
      if constexpr (drops) p = _mm512_maskz_mul_ps(kept->by[r + i], p, _mm512_set1_ps(dropped.drops.kept));
      store_rounded(w.p + at, vector(p));
      store_rounded(w.ds + at, ds[i]);
    }
    store_interleaved(w.ds_interleaved + r * block + (sizeof(T) == 2 ? 2 * c : c), block, ds[0], ds[1]);
  }
}

template <class Products, class T>
void backward_block(const View<T>& view, const BackwardParts<T>& w, std::int64_t head, std::int64_t q_begin,
                    std::int64_t k_begin) {
  const std::int64_t D = view.p.head_dim;
  const std::int64_t per_word = 4 / static_cast<std::int64_t>(sizeof(T)), words_d = D / per_word,
                     words_block = block / per_word;
  Products::template product<T, false>({w.k + k_begin * D, words_d}, {w.q_transposed + q_begin * D, block},
                                       {w.scores, block}, {block, block, words_d});
  Products::template product<T, false>({w.v + k_begin * D, words_d}, {w.dout_transposed + q_begin * D, block},
                                       {w.dp, block}, {block, block, words_d});
  const bool seen = w.seen.all(q_begin, k_begin), drops = view.p.drops.threshold > 0;
  const auto gradients = seen && drops ? gradient_columns<T, false, true>
                         : seen        ? gradient_columns<T, false, false>
                         : drops       ? gradient_columns<T, true, true>
                                       : gradient_columns<T, true, false>;
  for (std::int64_t c = 0; c < block; c += 16) gradients(w, q_begin, k_begin, c, view.p.scale, view.dropped(head));
  Products::template product<T, true>({w.p, words_block}, {w.dout + q_begin * D, D}, {w.dv + k_begin * D, D},
                                      {block, D, words_block});
  Products::template product<T, true>({w.ds, words_block}, {w.q + q_begin * D, D}, {w.dk + k_begin * D, D},
                                      {block, D, words_block});
  Products::template product<T, true>({w.k_transposed + k_begin * D, words_block}, {w.ds_interleaved, block},
                                      {w.dq_transposed + q_begin * D, block}, {D, block, words_block});
}

template <class T>
void begin_head(const View<T>& view, const BackwardParts<T>& w, std::int64_t head) {
  const auto& p = view.p;
  const RowsOf<T> q = view.rows_qkv(view.at_q(head)), dout = view.rows_out(p.dout, head);
  pack_interleaved(q, w.q);
  pack_transposed(q, reinterpret_cast<std::int32_t*>(w.q_transposed));
  pack_interleaved(dout, w.dout);
  pack_transposed(dout, reinterpret_cast<std::int32_t*>(w.dout_transposed));
  __builtin_memset(w.dq_transposed, 0, static_cast<std::size_t>(padded(p.length) * p.head_dim) * 4);
  for (std::int64_t t = 0; t < padded(p.length); ++t) {
    const bool real = t < p.length;
    V products = splat(0);
    for (std::int64_t d = 0; real && d < p.head_dim; d += 16)
      products +=
          load(dout.at + t * dout.stride + d, width) * load(p.out + view.at_out(head) + t * dout.stride + d, width);
    w.delta[t] = sum(products);
    w.lse[t] = real ? view.lse(head)[t] * log2_e : 0;
  }
}

template <class T>
void write_dq(const View<T>& view, const BackwardParts<T>& w, std::int64_t head) {
  const std::int64_t D = view.p.head_dim;
  for (std::int64_t t = 0; t < view.p.length; ++t)
    write_column(w.dq_transposed + t / block * block * D, t % block, D, 1.0f,
                 view.p.dqkv + view.at_q(head) + t * view.width_qkv());
}

template <class Products, class T>
void backward_by(const AttentionProblem<T>& problem, std::int64_t row, std::int64_t kv_head, void* workspace) {
  [[maybe_unused]] const Products setting;
  const View<T> view{problem, row, kv_head};
  const BackwardParts<T> w(workspace, problem.length, problem.head_dim);
  const std::int64_t D = problem.head_dim, length = problem.length, all = padded(length);
  pack_rows(view.rows_qkv(view.at_k()), w.k);
  pack_rows(view.rows_qkv(view.at_v()), w.v);
  pack_transposed(view.rows_qkv(view.at_k()), w.k_transposed);
  for (float* sums : {w.dk, w.dv}) __builtin_memset(sums, 0, static_cast<std::size_t>(all * D) * 4);
  w.seen.copy(view);

  for (std::int64_t head = kv_head * view.group(); head < (kv_head + 1) * view.group(); ++head) {
    begin_head(view, w, head);
    for (std::int64_t k_begin = 0; k_begin < length; k_begin += block)
      for (std::int64_t q_begin = k_begin; q_begin < length && w.seen.first[q_begin] < k_begin + block;
           q_begin += block)
        if (!w.seen.none(q_begin, k_begin)) backward_block<Products>(view, w, head, q_begin, k_begin);
    write_dq(view, w, head);
  }
  for (std::int64_t t = 0; t < length; ++t)
    for (std::int64_t d = 0; d < D; d += 16) {
      store_rounded(problem.dqkv + view.at_k() + t * view.width_qkv() + d, load(w.dk + t * D + d, width));
      store_rounded(problem.dqkv + view.at_v() + t * view.width_qkv() + d, load(w.dv + t * D + d, width));
    }
}

template <class T>
std::size_t workspace_bytes(std::int64_t length, std::int64_t head_dim) {
  const std::size_t forward = ForwardParts<T>(nullptr, length, head_dim).parts.next();
  const std::size_t backward = BackwardParts<T>(nullptr, length, head_dim).parts.next();
  return forward > backward ? forward : backward;
}

template <class T>
bool on_tiles(const AttentionProblem<T>& problem) {
  return sizeof(T) == 2 && problem.head_dim % TileProducts::multiple == 0 && has_tiles();
}

template <class T>
void forward(const AttentionProblem<T>& problem, std::int64_t row, std::int64_t kv_head, void* workspace) {
  const auto pass = on_tiles(problem) ? forward_by<TileProducts, T> : forward_by<VectorProducts, T>;
  pass(problem, row, kv_head, workspace);
}

template <class T>
void backward(const AttentionProblem<T>& problem, std::int64_t row, std::int64_t kv_head, void* workspace) {
  const auto pass = on_tiles(problem) ? backward_by<TileProducts, T> : backward_by<VectorProducts, T>;
  pass(problem, row, kv_head, workspace);
}

template <class T>
constexpr AttentionKernels<T> all_kernels{forward<T>, backward<T>, workspace_bytes<T>};

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

}  // namespace

template <>
const AttentionKernels<float>* attention_kernels<float>() {
  return has_avx512() ? &all_kernels<float> : nullptr;
}
template <>
const AttentionKernels<Bf16>* attention_kernels<Bf16>() {
  return has_avx512() && __builtin_cpu_supports("avx512bf16") ? &all_kernels<Bf16> : nullptr;
}

}  // namespace zero::kernels
