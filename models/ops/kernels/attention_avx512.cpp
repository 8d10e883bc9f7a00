// Compiled for AVX-512 with bf16 (see CMakeLists.txt); other processors get attention_absent.cpp. Nothing in this file
// may run before the processor has been checked.
#include "models/ops/kernels/attention_kernels.h"

#include <immintrin.h>

#include <initializer_list>

#include "base/simd/targets.h"

#include "models/ops/kernels/row16.inl"

namespace zero::kernels {
namespace {

using namespace HWY_NAMESPACE;

HWY_INLINE __m512 raw(V v) { return v.part[0].raw; }
HWY_INLINE V vector(__m512 raw) { return {{hn::Vec<Floats>{raw}}}; }

#include "models/ops/kernels/block_product.inl"

#include "models/ops/kernels/block_packing.inl"

constexpr std::int64_t block = 64;
constexpr float minus_infinity = -1e30f;

HWY_INLINE V masked(__mmask16 mask, V v) { return vector(_mm512_maskz_mov_ps(mask, raw(v))); }

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
  std::int32_t first(std::int64_t t) const { return p.first ? p.first[row * p.length + t] : 0; }
  RowsOf<T> rows_qkv(std::int64_t at) const {
    return {p.qkv + at, width_qkv(), p.length, padded(p.length), p.head_dim};
  }
  RowsOf<T> rows_out(const T* base, std::int64_t head) const {
    return {base + at_out(head), width_out(), p.length, padded(p.length), p.head_dim};
  }
};

/// A mask of the 16 columns from `begin` on that lie in [low, high].
HWY_INLINE __mmask16 columns_within(std::int64_t begin, std::int64_t low, std::int64_t high) {
  const std::int64_t from = low - begin, to = high - begin + 1;
  const std::uint32_t below_to = to <= 0 ? 0u : to >= 16 ? 0xffffu : (1u << to) - 1;
  const std::uint32_t below_from = from <= 0 ? 0u : from >= 16 ? 0xffffu : (1u << from) - 1;
  return static_cast<__mmask16>(below_to & ~below_from);
}

template <class T>
struct ForwardParts {
  explicit ForwardParts(void* workspace, std::int64_t length, std::int64_t head_dim) : parts(workspace) {
    const std::int64_t all = padded(length) * head_dim;
    k_transposed = parts.take<T>(all);
    v = parts.take<T>(all);
    q = parts.take<T>(block * head_dim);
    p = parts.take<T>(block * block);
    scores = parts.take<float>(block * block);
    out = parts.take<float>(block * head_dim);
    top = parts.take<float>(block);
    total = parts.take<float>(block);
  }
  Parts parts;
  T *k_transposed, *v;  // [words of head_dim, padded], [words of padded, head_dim]
  T *q, *p;             // [64, head_dim], [64, 64]
  float *scores, *out;  // [64, 64], [64, head_dim]
  float *top, *total;   // [64]: largest scaled score so far, sum of exponentials below it
};

/// Converts a row of 64 scores to exponentials and rescales the row's sums so far to the new maximum.
template <class T>
HWY_INLINE void softmax_row(const ForwardParts<T>& w, std::int64_t r, float scale, const __mmask16* masks,
                            std::int64_t head_dim) {
  V s[4], m = splat(minus_infinity);
  for (int c = 0; c < 4; ++c) {
    s[c] = load(w.scores + r * block + 16 * c, width) * scale;
    m = vector(_mm512_mask_max_ps(raw(m), masks[c], raw(m), raw(s[c])));
  }
  const float before = w.top[r], found = _mm512_reduce_max_ps(raw(m)), top = found > before ? found : before;
  V sums = splat(0);
  for (int c = 0; c < 4; ++c) {
    const V e = masked(masks[c], exponential(s[c] - top));
    sums += e;
    store_rounded(w.p + r * block + 16 * c, e);
  }
  const float shrink = _mm512_cvtss_f32(raw(exponential(splat(before - top))));
  w.total[r] = w.total[r] * shrink + sum(sums);
  w.top[r] = top;
  if (shrink == 1.0f) return;
  for (std::int64_t d = 0; d < head_dim; d += 16)
    store(w.out + r * head_dim + d, load(w.out + r * head_dim + d, width) * shrink, width);
}

template <class T>
void forward_block(const View<T>& view, const ForwardParts<T>& w, std::int64_t head, std::int64_t q_begin) {
  const auto& p = view.p;
  const std::int64_t D = p.head_dim, all = padded(p.length),
                     rows = p.length - q_begin < block ? p.length - q_begin : block;
  const std::int64_t per_word = 4 / static_cast<std::int64_t>(sizeof(T)), words_d = D / per_word,
                     words_block = block / per_word;
  const float scale = p.scale;
  pack_rows<T>({p.qkv + view.at_q(head) + q_begin * view.width_qkv(), view.width_qkv(), rows, block, D}, w.q);
  __builtin_memset(w.out, 0, static_cast<std::size_t>(block * D) * 4);
  for (std::int64_t r = 0; r < block; ++r) w.top[r] = minus_infinity, w.total[r] = 0;

  for (std::int64_t k_begin = view.first(q_begin) / block * block; k_begin <= q_begin; k_begin += block) {
    product<T, false>({w.q, words_d}, {reinterpret_cast<std::int32_t*>(w.k_transposed) + k_begin, all},
                      {w.scores, block}, {block, block, words_d});
    const bool all_seen = k_begin < q_begin && view.first(q_begin + rows - 1) <= k_begin;
    __mmask16 masks[4] = {0xffff, 0xffff, 0xffff, 0xffff};
    for (std::int64_t r = 0; r < block; ++r) {
      const std::int64_t t = q_begin + (r < rows ? r : rows - 1);
      for (int c = 0; !all_seen && c < 4; ++c) masks[c] = columns_within(k_begin + 16 * c, view.first(t), t);
      softmax_row(w, r, scale, masks, D);
    }
    product<T, true>({w.p, words_block}, {w.v + k_begin * D, D}, {w.out, D}, {block, D, words_block});
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    const float share = 1.0f / w.total[r];
    T* out = p.out + view.at_out(head) + (q_begin + r) * view.width_out();
    for (std::int64_t d = 0; d < D; d += 16) store_rounded(out + d, load(w.out + r * D + d, width) * share);
    view.lse(head)[q_begin + r] = w.top[r] + __builtin_logf(w.total[r]);
  }
}

template <class T>
void forward(const AttentionProblem<T>& problem, std::int64_t row, std::int64_t kv_head, void* workspace) {
  const View<T> view{problem, row, kv_head};
  const ForwardParts<T> w(workspace, problem.length, problem.head_dim);
  pack_transposed(view.rows_qkv(view.at_k()), reinterpret_cast<std::int32_t*>(w.k_transposed));
  pack_interleaved(view.rows_qkv(view.at_v()), w.v);
  for (std::int64_t g = 0; g < view.group(); ++g)
    for (std::int64_t q_begin = 0; q_begin < problem.length; q_begin += block)
      forward_block(view, w, kv_head * view.group() + g, q_begin);
}

template <class T>
struct BackwardParts {
  explicit BackwardParts(void* workspace, std::int64_t length, std::int64_t head_dim) : parts(workspace) {
    const std::int64_t rows = padded(length), all = rows * head_dim;
    for (T** part : {&k, &v, &k_transposed, &q, &q_transposed, &dout, &dout_transposed})
      *part = parts.template take<T>(all);
    for (float** part : {&dq_transposed, &dk, &dv}) *part = parts.template take<float>(all);
    for (float** part : {&lse, &delta}) *part = parts.template take<float>(rows);
    first = parts.take<std::int32_t>(rows);
    for (T** part : {&p, &ds, &ds_interleaved}) *part = parts.template take<T>(block * block);
    for (float** part : {&scores, &dp}) *part = parts.template take<float>(block * block);
  }
  Parts parts;
  T *k, *v;                           // [padded, head_dim]
  T* k_transposed;                    // [head_dim, padded], a first factor
  T *q, *dout;                        // [words of padded, head_dim]
  T *q_transposed, *dout_transposed;  // [words of head_dim, padded]
  float* dq_transposed;               // [head_dim, padded]
  float *dk, *dv;                     // [padded, head_dim]
  float *lse, *delta;                 // [padded]; delta is the sum of dout * out
  std::int32_t* first;                // [padded]
  T *p, *ds, *ds_interleaved;         // [64 keys, 64 queries]; the last in words along the keys
  float *scores, *dp;                 // [64 keys, 64 queries]
};

/// p = exp(score - lse) and ds = p (dp - delta), for two keys and all 64 queries of a block.
template <class T>
HWY_INLINE void gradient_rows(const BackwardParts<T>& w, std::int64_t q_begin, std::int64_t k_begin, std::int64_t r,
                              float scale) {
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  for (std::int64_t c = 0; c < block; c += 16) {
    const V lse = load(w.lse + q_begin + c, width), delta = load(w.delta + q_begin + c, width);
    const __m512i query = _mm512_add_epi32(lanes, _mm512_set1_epi32(static_cast<int>(q_begin + c)));
    const __m512i first = _mm512_loadu_si512(w.first + q_begin + c);
    V ds[2];
    for (int i = 0; i < 2; ++i) {
      const __m512i key = _mm512_set1_epi32(static_cast<int>(k_begin + r + i));
      const __mmask16 sees = _mm512_cmple_epi32_mask(key, query) & _mm512_cmple_epi32_mask(first, key);
      const std::int64_t at = (r + i) * block + c;
      const V p = masked(sees, exponential(load(w.scores + at, width) * scale - lse));
      ds[i] = p * (load(w.dp + at, width) - delta) * scale;
      store_rounded(w.p + at, p);
      store_rounded(w.ds + at, ds[i]);
    }
    store_interleaved(w.ds_interleaved + r * block + (sizeof(T) == 2 ? 2 * c : c), block, ds[0], ds[1]);
  }
}

template <class T>
void backward_block(const View<T>& view, const BackwardParts<T>& w, std::int64_t q_begin, std::int64_t k_begin) {
  const std::int64_t D = view.p.head_dim, all = padded(view.p.length);
  const std::int64_t per_word = 4 / static_cast<std::int64_t>(sizeof(T)), words_d = D / per_word,
                     words_block = block / per_word;
  const float scale = view.p.scale;
  const auto words = [](T* part) { return reinterpret_cast<std::int32_t*>(part); };
  product<T, false>({w.k + k_begin * D, words_d}, {words(w.q_transposed) + q_begin, all}, {w.scores, block},
                    {block, block, words_d});
  product<T, false>({w.v + k_begin * D, words_d}, {words(w.dout_transposed) + q_begin, all}, {w.dp, block},
                    {block, block, words_d});
  for (std::int64_t r = 0; r < block; r += 2) gradient_rows(w, q_begin, k_begin, r, scale);
  product<T, true>({w.p, words_block}, {w.dout + q_begin * D, D}, {w.dv + k_begin * D, D}, {block, D, words_block});
  product<T, true>({w.ds, words_block}, {w.q + q_begin * D, D}, {w.dk + k_begin * D, D}, {block, D, words_block});
  product<T, true>({w.k_transposed + k_begin, all / per_word}, {w.ds_interleaved, block},
                   {w.dq_transposed + q_begin, all}, {D, block, words_block});
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
    w.lse[t] = real ? view.lse(head)[t] : 0;
  }
}

template <class T>
void write_dq(const View<T>& view, const BackwardParts<T>& w, std::int64_t head) {
  const std::int64_t all = padded(view.p.length), D = view.p.head_dim;
  float column[256];
  for (std::int64_t t = 0; t < view.p.length; ++t) {
    for (std::int64_t d = 0; d < D; ++d) column[d] = w.dq_transposed[d * all + t];
    T* dq = view.p.dqkv + view.at_q(head) + t * view.width_qkv();
    for (std::int64_t d = 0; d < D; d += 16) store_rounded(dq + d, load(column + d, width));
  }
}

template <class T>
void backward(const AttentionProblem<T>& problem, std::int64_t row, std::int64_t kv_head, void* workspace) {
  const View<T> view{problem, row, kv_head};
  const BackwardParts<T> w(workspace, problem.length, problem.head_dim);
  const std::int64_t D = problem.head_dim, length = problem.length, all = padded(length);
  pack_rows(view.rows_qkv(view.at_k()), w.k);
  pack_rows(view.rows_qkv(view.at_v()), w.v);
  pack_transposed(view.rows_qkv(view.at_k()), w.k_transposed);
  for (float* sums : {w.dk, w.dv}) __builtin_memset(sums, 0, static_cast<std::size_t>(all * D) * 4);
  for (std::int64_t t = 0; t < all; ++t) w.first[t] = t < length ? view.first(t) : static_cast<std::int32_t>(t);

  for (std::int64_t head = kv_head * view.group(); head < (kv_head + 1) * view.group(); ++head) {
    begin_head(view, w, head);
    for (std::int64_t k_begin = 0; k_begin < length; k_begin += block)
      for (std::int64_t q_begin = k_begin; q_begin < length && w.first[q_begin] < k_begin + block; q_begin += block)
        backward_block(view, w, q_begin, k_begin);
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
