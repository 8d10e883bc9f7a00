// The backward pass. Included inside an anonymous namespace.

template <class T>
struct BackwardParts {
  explicit BackwardParts(void* workspace, std::int64_t length, std::int64_t head_dim, bool has_gaps)
      : parts(workspace), rows(padded(length)), all(rows * head_dim), seen(parts, rows, has_gaps) {}
  Parts parts;
  const std::int64_t rows, all;
  SeenKeys seen;
  T *const k = parts.take<T>(all), *const v = parts.take<T>(all);     // [padded, head_dim]
  T* const k_transposed = parts.take<T>(all);                         // [blocks, head_dim, 64], a first factor
  T *const q = parts.take<T>(all), *const dout = parts.take<T>(all);  // [words of padded, head_dim]
  // [blocks, words of head_dim, 64]
  T *const q_transposed = parts.take<T>(all), *const dout_transposed = parts.take<T>(all);
  float* const dq_transposed = parts.take<float>(all);                           // [blocks, head_dim, 64]
  float *const dk = parts.take<float>(all), *const dv = parts.take<float>(all);  // [padded, head_dim]
  float* const lse = parts.take<float>(rows);                                    // times log2(e)
  float* const delta = parts.take<float>(rows);                                  // the sum of dout * out
  // [64 keys, 64 queries]; the last in words along the keys
  T *const p = parts.take<T>(block * block), *const ds = parts.take<T>(block * block),
           *const ds_interleaved = parts.take<T>(block * block);
  float *const scores = parts.take<float>(block * block), *const dp = parts.take<float>(block * block);
};

/// One query head.
template <class Products, class T>
class BackwardPass {
 public:
  BackwardPass(const View<T>& view, const BackwardParts<T>& parts, std::int64_t head)
      : view_(view), w_(parts), head_(head) {}

  void run() const {
    for (std::int64_t t = 0; t < view_.p.length; t += block) pack_queries(t);
    __builtin_memset(w_.dq_transposed, 0, static_cast<std::size_t>(padded(view_.p.length) * D) * 4);
    for (std::int64_t k_begin = 0; k_begin < view_.p.length; k_begin += block)
      for (std::int64_t q_begin = k_begin; q_begin < view_.p.length && w_.seen.first[q_begin] < k_begin + block;
           q_begin += block)
        if (!w_.seen.none(q_begin, block, k_begin)) add_block(q_begin, k_begin);
    write_dq();
  }

 private:
  void pack_queries(std::int64_t t) const {
    const RowsOf<T> all_q = view_.rows_qkv(view_.at_q(head_)), all_dout = view_.rows_out(view_.p.dout, head_),
                    all_out = view_.rows_out(view_.p.out, head_);
    const RowsOf<T> q = all_q.part(t, block), dout = all_dout.part(t, block), out = all_out.part(t, block);
    for (const RowsOf<T>& all : {all_q, all_dout, all_out}) prefetch(all.part(t + block, block));
    pack_interleaved(q, w_.q + t * D);
    pack_transposed_words(q, w_.q_transposed + t * D);
    pack_interleaved(dout, w_.dout + t * D);
    pack_transposed_words(dout, w_.dout_transposed + t * D);
    for (std::int64_t i = 0; i < block; ++i) {
      const bool real = i < q.rows;
      V products = splat(0);
      for (std::int64_t d = 0; real && d < D; d += 16)
        products += load(dout.at + i * dout.stride + d, width) * load(out.at + i * out.stride + d, width);
      w_.delta[t + i] = sum(products);
      w_.lse[t + i] = real ? view_.lse(head_)[t + i] * log2_e : 0;
    }
  }

  void add_block(std::int64_t q_begin, std::int64_t k_begin) const {
    const std::int64_t k = k_begin * D, q = q_begin * D;
    const Size scored{block, block, words_d}, summed{block, D, words_block};
    Products::template product<T, false>({w_.k + k, words_d}, {w_.q_transposed + q, block}, {w_.scores, block}, scored);
    Products::template product<T, false>({w_.v + k, words_d}, {w_.dout_transposed + q, block}, {w_.dp, block}, scored);
    differentiate(q_begin, k_begin);
    Products::template product<T, true>({w_.p, words_block}, {w_.dout + q, D}, {w_.dv + k, D}, summed);
    Products::template product<T, true>({w_.ds, words_block}, {w_.q + q, D}, {w_.dk + k, D}, summed);
    Products::template product<T, true>({w_.k_transposed + k, words_block}, {w_.ds_interleaved, block},
                                        {w_.dq_transposed + q, block}, {D, block, words_block});
  }

  void differentiate(std::int64_t q_begin, std::int64_t k_begin) const {
    const bool seen = w_.seen.all(q_begin, block, k_begin), drops = view_.p.drops.threshold > 0;
    for (std::int64_t c = 0; c < block; c += 16)
      if (seen)
        drops ? columns<false, true>(q_begin + c, k_begin, c) : columns<false, false>(q_begin + c, k_begin, c);
      else
        drops ? columns<true, true>(q_begin + c, k_begin, c) : columns<true, false>(q_begin + c, k_begin, c);
  }

  /// p = exp(score - lse) and ds = p (dp - delta), for all 64 keys and 16 queries of a block. Dropout's factors
  /// multiply dp, and then p for the values' gradient.
  template <bool masked, bool drops>
  void columns(std::int64_t query, std::int64_t k_begin, std::int64_t c) const {
    const __m512 lse = _mm512_loadu_ps(w_.lse + query), delta = _mm512_loadu_ps(w_.delta + query);
    const __m512 factor = _mm512_set1_ps(view_.p.scale * log2_e), slope = _mm512_set1_ps(view_.p.scale);
    const Sight sight(w_.seen, query);
    const DroppedHead dropped = view_.dropped(head_);
    std::optional<KeptKeys> kept;
    if constexpr (drops) kept.emplace(dropped, query, k_begin);
    for (std::int64_t r = 0; r < block; r += 2) {
      V ds[2];
      for (int i = 0; i < 2; ++i) {
        const std::int64_t place = (r + i) * block + c;
        __m512 p = power_of_2<T>(_mm512_fmsub_ps(_mm512_loadu_ps(w_.scores + place), factor, lse));
        if constexpr (masked) p = _mm512_maskz_mov_ps(sight.of(k_begin + r + i), p);
        __m512 dp = _mm512_loadu_ps(w_.dp + place);
        if constexpr (drops) dp = _mm512_maskz_mul_ps(kept->by[r + i], dp, _mm512_set1_ps(dropped.drops.kept));
        ds[i] = vector(_mm512_mul_ps(_mm512_mul_ps(p, slope), _mm512_sub_ps(dp, delta)));
        if constexpr (drops) p = _mm512_maskz_mul_ps(kept->by[r + i], p, _mm512_set1_ps(dropped.drops.kept));
        store_rounded(w_.p + place, vector(p));
        store_rounded(w_.ds + place, ds[i]);
      }
      store_interleaved(w_.ds_interleaved + r * block + (sizeof(T) == 2 ? 2 * c : c), block, ds[0], ds[1]);
    }
  }

  void write_dq() const {
    float factors[block];
    for (float& factor : factors) factor = 1;
    for (std::int64_t t = 0; t < view_.p.length; t += block)
      write_columns<T>(
          {w_.dq_transposed + t * D, block}, factors,
          {view_.p.dqkv + view_.at_q(head_) + t * view_.width_qkv(), view_.width_qkv(), view_.p.length - t, D});
  }

  const View<T>& view_;
  const BackwardParts<T>& w_;
  const std::int64_t head_;
  const std::int64_t D = view_.p.head_dim, per_word = 4 / static_cast<std::int64_t>(sizeof(T)), words_d = D / per_word,
                     words_block = block / per_word;
};

template <class Products, class T>
void backward_by(const AttentionProblem<T>& problem, std::int64_t row, std::int64_t kv_head, void* workspace) {
  [[maybe_unused]] const Products setting;
  const View<T> view{problem, row, kv_head};
  const BackwardParts<T> w(workspace, problem.length, problem.head_dim, problem.gaps);
  const std::int64_t D = problem.head_dim, length = problem.length, all = padded(length);
  pack_rows(view.rows_qkv(view.at_k()), w.k);
  pack_rows(view.rows_qkv(view.at_v()), w.v);
  pack_transposed(view.rows_qkv(view.at_k()), w.k_transposed);
  for (float* sums : {w.dk, w.dv}) __builtin_memset(sums, 0, static_cast<std::size_t>(all * D) * 4);
  w.seen.copy(view);
  for (std::int64_t head = kv_head * view.group(); head < (kv_head + 1) * view.group(); ++head)
    BackwardPass<Products, T>(view, w, head).run();
  for (std::int64_t t = 0; t < length; ++t)
    for (std::int64_t d = 0; d < D; d += 16) {
      store_rounded(problem.dqkv + view.at_k() + t * view.width_qkv() + d, load(w.dk + t * D + d, width));
      store_rounded(problem.dqkv + view.at_v() + t * view.width_qkv() + d, load(w.dv + t * D + d, width));
    }
}
