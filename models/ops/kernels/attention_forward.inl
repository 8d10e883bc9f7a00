// The forward pass. Included inside an anonymous namespace.

// A block of these needs less than an L1 cache of 48 KiB, in bf16 with heads of 64.
constexpr std::int64_t queries = 32;

template <class T>
struct ForwardParts {
  explicit ForwardParts(void* workspace, std::int64_t length, std::int64_t head_dim, bool has_gaps)
      : parts(workspace),
        seen(parts, padded(length), has_gaps),
        k(parts.take<T>(padded(length) * head_dim)),
        v_transposed(parts.take<T>(padded(length) * head_dim)),
        q_transposed(parts.take<T>(queries * head_dim)),
        p(parts.take<T>(block * queries)),
        scores(parts.take<float>(block * queries)),
        out(parts.take<float>(queries * head_dim)),
        top(parts.take<float>(queries)),
        total(parts.take<float>(queries)),
        stored_total(parts.take<float>(queries)) {}
  Parts parts;
  SeenKeys seen;
  T *k, *v_transposed;  // [padded, head_dim], [blocks, head_dim, 64]
  T *q_transposed, *p;  // [words of head_dim, 32], [words of 64 keys, 32 queries]
  float *scores, *out;  // [64 keys, 32 queries], [head_dim, 32 queries]
  float* top;           // [32]: above the scaled scores so far, times log2(e); exponentials are relative to it
  float* total;         // [32]: sum of exponentials
  float* stored_total;  // [32]: their sum as p holds them, by which outputs are divided
};

/// One query head.
template <class Products, class T>
class ForwardPass {
 public:
  ForwardPass(const View<T>& view, const ForwardParts<T>& parts, std::int64_t head)
      : view_(view), w_(parts), head_(head) {}

  void run() const {
    for (std::int64_t q_begin = 0; q_begin < view_.p.length; q_begin += queries) add_queries(q_begin);
  }

 private:
  RowsInto<T> rows_out(std::int64_t q_begin) const {
    return {view_.p.out + view_.at_out(head_) + q_begin * view_.width_out(), view_.width_out(),
            std::min(queries, view_.p.length - q_begin), D};
  }

  void add_queries(std::int64_t q_begin) const {
    constexpr float lowest_top = -1e20f;  // far above an unseen score, so that its exponential is 0
    const RowsOf<T> q = view_.rows_qkv(view_.at_q(head_));
    pack_transposed_words(q.part(q_begin, queries), w_.q_transposed, queries);
    prefetch(q.part(q_begin + queries, queries));
    prefetch(rows_out(q_begin));
    __builtin_memset(w_.out, 0, static_cast<std::size_t>(queries * D) * 4);
    std::fill_n(w_.top, queries, lowest_top);
    std::fill_n(w_.total, queries, 0.0f);
    std::fill_n(w_.stored_total, queries, 0.0f);
    for (std::int64_t k_begin = w_.seen.first[q_begin] / block * block; k_begin <= q_begin; k_begin += block)
      if (!w_.seen.none(q_begin, queries, k_begin)) add_keys(q_begin, k_begin);
    write(q_begin);
  }

  void add_keys(std::int64_t q_begin, std::int64_t k_begin) const {
    Products::template product<T, false>({w_.k + k_begin * D, words_d}, {w_.q_transposed, queries},
                                         {w_.scores, queries}, {block, queries, words_d});
    if (!w_.seen.all(q_begin, queries, k_begin)) hide(q_begin, k_begin);
    for (std::int64_t c = 0; c < queries; c += 16)
      view_.p.drops.threshold ? softmax<true>(q_begin + c, k_begin, c) : softmax<false>(q_begin + c, k_begin, c);
    Products::template product<T, true>({w_.v_transposed + k_begin * D, words_block}, {w_.p, queries},
                                        {w_.out, queries}, {D, queries, words_block});
  }

  /// Replaces the scores of keys that a query does not see.
  void hide(std::int64_t q_begin, std::int64_t k_begin) const {
    constexpr float unseen = -1e30f;
    for (std::int64_t c = 0; c < queries; c += 16) {
      const Sight sight(w_.seen, q_begin + c);
      float* score = w_.scores + c;
      for (std::int64_t r = 0; r < block; ++r, score += queries)
        _mm512_storeu_ps(score,
                         _mm512_mask_mov_ps(_mm512_set1_ps(unseen), sight.of(k_begin + r), _mm512_loadu_ps(score)));
    }
  }

  /// Converts the scores of 16 queries, columns of the block from `c` on, to exponentials. Dropped ones count in
  /// `total`, as in a softmax before dropout.
  template <bool drops>
  void softmax(std::int64_t query, std::int64_t k_begin, std::int64_t c) const {
    const float* const scores = w_.scores + c;
    T* const p = w_.p + (sizeof(T) == 2 ? 2 * c : c);
    const auto score = [scores](std::int64_t r) { return _mm512_loadu_ps(scores + r * queries); };
    const __m512 factor = _mm512_set1_ps(view_.p.scale * log2_e);
    const __m512 top = raised_top(c, _mm512_mul_ps(largest(score), factor));
    __m512 sums[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()}, stored_sum = _mm512_setzero_ps();
    const DroppedHead dropped = view_.dropped(head_);
    std::optional<KeptKeys> kept;
    if constexpr (drops) kept.emplace(dropped, query, k_begin);
    for (std::int64_t r = 0; r < block; r += 2) {
      __m512 e[2];
      for (int i = 0; i < 2; ++i) {
        e[i] = power_of_2<T>(_mm512_fmsub_ps(score(r + i), factor, top));
        sums[i] = _mm512_add_ps(sums[i], e[i]);
      }
      stored_sum = add_stored(T{}, stored_sum, e[0], e[1]);
      if constexpr (drops)
        for (int i = 0; i < 2; ++i)
          e[i] = _mm512_maskz_mul_ps(kept->by[r + i], e[i], _mm512_set1_ps(dropped.drops.kept));
      store_interleaved(p + r * queries, queries, vector(e[0]), vector(e[1]));
    }
    add_to(w_.total + c, _mm512_add_ps(sums[0], sums[1]));
    add_to(w_.stored_total + c, stored_sum);
  }

  static void add_to(float* sums, __m512 more) { _mm512_storeu_ps(sums, _mm512_add_ps(_mm512_loadu_ps(sums), more)); }

  template <class F>
  static __m512 largest(F score) {
    __m512 most[4] = {score(0), score(1), score(2), score(3)};
    for (std::int64_t r = 4; r < block; r += 4)
      for (int i = 0; i < 4; ++i) most[i] = _mm512_max_ps(most[i], score(r + i));
    return _mm512_max_ps(_mm512_max_ps(most[0], most[1]), _mm512_max_ps(most[2], most[3]));
  }

  /// Returns the top for scores up to `found`. In bf16 it is put higher than it need be, so that it seldom rises. In
  /// fp32 that would round exponents more coarsely. When it rises, the sums so far are rescaled.
  __m512 raised_top(std::int64_t c, __m512 found) const {
    const __m512 before = _mm512_loadu_ps(w_.top + c), ahead = _mm512_set1_ps(sizeof(T) == 2 ? 8 : 0);
    const __mmask16 higher = _mm512_cmp_ps_mask(found, before, _CMP_GT_OQ);
    if (higher == 0) return before;
    const __m512 top = _mm512_mask_add_ps(before, higher, found, ahead);
    const __m512 shrink = power_of_2<T>(_mm512_sub_ps(before, top));
    const auto rescale = [shrink](float* at) { _mm512_storeu_ps(at, _mm512_mul_ps(_mm512_loadu_ps(at), shrink)); };
    for (std::int64_t d = 0; d < D; ++d) rescale(w_.out + d * queries + c);
    rescale(w_.total + c);
    rescale(w_.stored_total + c);
    _mm512_storeu_ps(w_.top + c, top);
    return top;
  }

  void write(std::int64_t q_begin) const {
    const RowsInto<T> rows = rows_out(q_begin);
    float factors[queries];
    for (std::int64_t r = 0; r < queries; ++r) factors[r] = 1.0f / w_.stored_total[r];
    write_columns({w_.out, queries}, factors, rows);
    for (std::int64_t r = 0; r < rows.rows; ++r)
      view_.lse(head_)[q_begin + r] = w_.top[r] * ln_2 + __builtin_logf(w_.total[r]);
  }

  const View<T>& view_;
  const ForwardParts<T>& w_;
  const std::int64_t head_;
  const std::int64_t D = view_.p.head_dim, per_word = 4 / static_cast<std::int64_t>(sizeof(T)), words_d = D / per_word,
                     words_block = block / per_word;
};

template <class Products, class T>
void forward_by(const AttentionProblem<T>& problem, std::int64_t row, std::int64_t kv_head, void* workspace) {
  [[maybe_unused]] const Products setting;
  const View<T> view{problem, row, kv_head};
  const ForwardParts<T> w(workspace, problem.length, problem.head_dim, problem.gaps);
  pack_rows(view.rows_qkv(view.at_k()), w.k);
  pack_transposed(view.rows_qkv(view.at_v()), w.v_transposed);
  w.seen.copy(view);
  for (std::int64_t g = 0; g < view.group(); ++g) ForwardPass<Products, T>(view, w, kv_head * view.group() + g).run();
}
