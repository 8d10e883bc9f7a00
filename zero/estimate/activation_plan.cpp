#include "zero/estimate/activation_plan.h"

#include <algorithm>
#include <array>

#include "models/nn/head.h"
#include "models/ops/kernels/attention_kernels.h"

namespace zero {
namespace {

enum Kind { activation, logit, gradient, kinds };

/// Live bytes by kind, and those of the moment when their sum was largest.
class Timeline {
 public:
  std::int64_t take(std::int64_t bytes, Kind kind = activation) {
    live_[kind] += bytes;
    if (sum(live_) > sum(peak_)) peak_ = live_;
    return bytes;
  }
  void give(std::int64_t bytes, Kind kind = activation) { live_[kind] -= bytes; }
  /// Something that comes and goes at once.
  void touch(std::int64_t bytes, Kind kind = activation) { give(take(bytes, kind), kind); }

  std::int64_t live(Kind kind) const { return live_[kind]; }
  std::int64_t peak(Kind kind) const { return peak_[kind]; }

 private:
  using Bytes = std::array<std::int64_t, kinds>;
  static std::int64_t sum(const Bytes& bytes) { return bytes[activation] + bytes[logit] + bytes[gradient]; }
  Bytes live_{}, peak_{};
};

/// Of the CPU's attention.
std::int64_t workspace_bytes(const ActivationWork& work, std::int64_t head_dim) {
  if (work.on_device) return 0;
  const auto of = [&](const auto* kernels) {
    return kernels ? work.threads * std::int64_t(kernels->workspace_bytes(work.seq_len, head_dim) + 64) : 0;
  };
  if (work.compute == at::kFloat) return of(kernels::attention_kernels<float>());
  return work.compute == at::kBFloat16 ? of(kernels::attention_kernels<kernels::Bf16>()) : 0;
}

/// Of a document, in the sums of a GPU's backward pass: it is rounded up to as many tokens.
constexpr std::int64_t span_rounding = 128;

/// Bytes of a tensor of the block: n tokens by its width. On a GPU: `repeated` keys and values, which fp32's attention
/// wants once per head, `sums` of the queries' gradient in fp32 while bf16's and fp16's runs backward (documents taken
/// to be span_rounding tokens long), and the `bias` that all layers share where fp32 meets several documents.
struct Widths {
  std::int64_t x, qkv, heads, lse, gate_up, inner, rstd, workspace, repeated = 0, sums = 0, bias = 0;

  Widths(const ModelConfig& c, const ActivationWork& work) {
    const std::int64_t n = work.batch * work.seq_len, row = n * std::int64_t(c10::elementSize(work.compute));
    x = row * c.hidden_size;
    heads = row * c.num_attention_heads * c.head_dim;
    qkv = heads + 2 * row * c.num_key_value_heads * c.head_dim;
    lse = 4 * n * c.num_attention_heads;
    inner = row * c.intermediate_size;
    gate_up = 2 * inner;
    rstd = 4 * n;
    workspace = workspace_bytes(work, c.head_dim);
    if (!work.on_device) return;
    const bool wide = work.compute == at::kFloat;
    if (wide && c.num_key_value_heads < c.num_attention_heads) repeated = 2 * heads;
    if (wide && work.packed) bias = 4 * n * work.seq_len;
    if (!wide)
      sums = 4 * (work.packed ? n + (n + span_rounding - 1) / span_rounding * span_rounding : n) *
             c.num_attention_heads * c.head_dim;
  }
};

/// Bytes of the gradient of one parameter of a unit; nothing when it is frozen.
std::int64_t gradient_bytes(const Parameter& parameter, const ActivationWork& work) {
  return parameter.trainable ? parameter.numel() * std::int64_t(c10::elementSize(work.compute)) : 0;
}

class Walk {
 public:
  Walk(const Model& model, const ActivationWork& work) : model_(model), work_(work), w_(model.config, work) {}

  ActivationBytes run() {
    const ModelConfig& c = model_.config;
    ActivationBytes bytes;
    bytes.at_rest = 4 * work_.seq_len * c.head_dim;  // cosines and sines of half the head, fp32
    time_.take(bytes.at_rest);
    time_.take(w_.bias);
    time_.take(w_.x);  // the embedding's output
    const int last = int(model_.units.size()) - 1;
    for (int u = 1; u < last; ++u) block_forward(recomputed(u));
    head_forward();
    bytes.kept = time_.live(activation) + time_.live(logit) - bytes.at_rest;
    head_backward();
    for (int u = last - 1; u > 0; --u) {
      time_.give(w_.x);  // the block's output went with the saved tensors of the unit behind it
      if (recomputed(u)) block_forward(false);
      block_backward(*model_.units[u], recomputed(u));
    }
    embedding_backward();
    bytes.activations = time_.peak(activation);
    bytes.logits = time_.peak(logit);
    bytes.unit_gradients = time_.peak(gradient);
    return bytes;
  }

 private:
  bool recomputed(int unit) const { return work_.recompute_every > 0 && (unit - 1) % work_.recompute_every == 0; }

  // Up to the heads, whose projection makes the residual's middle.
  std::int64_t attention_forward() {
    time_.touch(w_.x + w_.rstd + w_.qkv);  // the normed rows beside the product
    time_.take(w_.rstd + w_.qkv);
    time_.take(w_.repeated + w_.heads + w_.lse);
    time_.touch(w_.workspace);
    return attention_saved();
  }
  std::int64_t attention_saved() const { return w_.rstd + w_.qkv + w_.repeated + w_.heads + w_.lse; }
  std::int64_t drop_attention() {
    time_.give(attention_saved());
    return attention_saved();
  }

  // A block's input was booked as the output of the unit before.
  void block_forward(bool drops) {
    std::int64_t saved = attention_forward();
    saved += time_.take(w_.x);  // the residual's middle
    if (work_.recompute_attention) saved -= drop_attention();
    time_.touch(w_.x + w_.rstd + w_.gate_up);
    saved += time_.take(w_.rstd + w_.gate_up);
    time_.touch(w_.inner + w_.x);
    time_.take(w_.x);
    if (drops) time_.give(saved);
  }

  // The gradient of the block's output is alive at the start, that of its input at the end.
  void block_backward(const Unit& unit, bool again) {
    const auto weight = [&](int index) { return gradient_bytes(unit.parameters().at(index), work_); };
    const bool wants = weight(down) > 0 || !unit.adapters().empty();
    const std::int64_t z = wants ? 1 : 0;

    time_.take(weight(down), gradient);
    time_.touch(z * w_.inner + w_.inner + w_.gate_up);
    time_.take(w_.gate_up);  // its gradient
    time_.give(w_.gate_up);  // itself

    time_.take(weight(gate_up), gradient);
    time_.touch(z * w_.x + 2 * w_.x);         // normed rows, their gradient, the input's gradient
    time_.give(w_.gate_up + w_.rstd + w_.x);  // the input's gradient is added to the residual's; the middle goes

    if (work_.recompute_attention) {
      attention_forward();
      time_.take(w_.x);  // the middle once more
    }
    time_.take(weight(o), gradient);
    time_.take(w_.heads);                               // gradient of the heads
    time_.take(w_.qkv);                                 // of q, k, v
    time_.touch(w_.workspace + w_.sums + w_.repeated);  // the gradients of what was repeated are as large
    time_.give(2 * w_.heads + w_.lse + w_.qkv + w_.repeated);

    time_.take(weight(qkv), gradient);
    time_.touch(z * w_.x + 2 * w_.x);
    time_.give(w_.qkv + w_.rstd);
    if (again || work_.recompute_attention) time_.give(w_.x);
    drop_gradients();
  }

  void head_forward() {
    const Head head(*this);
    time_.take(head.picked + head.rstd);
    time_.take(head.normed);
    if (head.one_piece) {
      time_.take(head.piece, logit);
    } else {
      time_.take(head.dz);
      time_.take(head.piece, logit);
      time_.take(head.sum, gradient);
      time_.take(head.next_piece, logit);  // a piece is there until the next one is
      time_.give(head.piece, logit);
      time_.touch(head.product, gradient);
      time_.give(head.next_piece, logit);
    }
    time_.give(head.normed + head.picked);
  }

  void head_backward() {
    const Head head(*this);
    time_.take(head.picked);
    if (head.one_piece) {
      time_.touch(head.normed);
      time_.take(head.weight, gradient);
      time_.take(head.dz);
    } else {
      time_.take(head.sum_is_gradient ? 0 : head.weight, gradient);
    }
    time_.take(w_.x);  // gradient of the last block's output
    if (head.picked > 0) time_.take(head.picked);
    time_.give(head.dz + 2 * head.picked + head.rstd);
    if (head.one_piece)
      time_.give(head.piece, logit);
    else if (!head.sum_is_gradient)
      time_.give(head.sum, gradient);
    if (!tied()) drop_gradients();
  }

  void embedding_backward() {
    const std::int64_t weight = gradient_bytes(model_.units.front()->parameters().front(), work_);
    if (weight == 0) return;
    const std::int64_t used = std::min(model_.config.vocab_size, work_.batch * work_.seq_len);
    const std::int64_t row = 4 * model_.config.hidden_size,
                       wide = work_.compute == at::kFloat ? 0 : work_.batch * work_.seq_len * row;
    time_.touch(used * row + wide);
    time_.take(used * row);
    time_.take(weight, gradient);
    if (wide > 0) time_.touch(used * row / 2);
  }

  struct Head {
    std::int64_t picked, normed, rstd, piece, next_piece, dz, weight, sum, product;
    bool one_piece, sum_is_gradient;

    explicit Head(const Walk& walk) {
      const ActivationWork& work = walk.work_;
      const ModelConfig& c = walk.model_.config;
      const std::int64_t element = std::int64_t(c10::elementSize(work.compute)), n = work.batch * work.seq_len;
      const std::int64_t limit = work.logits_bytes > 0 ? work.logits_bytes : default_logits_bytes;
      const std::int64_t rows = std::max<std::int64_t>(16, limit / (c.vocab_size * element));
      one_piece = n <= rows;
      piece = std::min(n, rows) * c.vocab_size * element;
      next_piece = std::min(std::max<std::int64_t>(0, n - rows), rows) * c.vocab_size * element;
      picked = work.masked_targets ? walk.w_.x : 0;
      normed = dz = walk.w_.x;
      rstd = walk.w_.rstd;
      const Unit& owner = walk.tied() ? *walk.model_.units.front() : *walk.model_.units.back();
      weight = gradient_bytes(owner.parameters().at(walk.tied() ? 0 : 1), work);
      sum_is_gradient = element == 4;
      sum = one_piece ? 0 : weight / element * 4;
      const std::int64_t some_rows = std::min(head_sum_rows, c.vocab_size) * (weight / c.vocab_size);
      product = sum_is_gradient
                    ? 0
                    : some_rows + some_rows / element * 4;  // and their cast, which LibTorch makes before it adds
    }
  };

  bool tied() const { return model_.config.tie_word_embeddings; }

  void drop_gradients() {
    const std::int64_t held = tied() ? gradient_bytes(model_.units.front()->parameters().front(), work_) : 0;
    time_.give(time_.live(gradient) - std::min(held, time_.live(gradient)), gradient);
  }

  enum Index { input_norm, qkv, o, post_attention_norm, gate_up, down };

  const Model& model_;
  const ActivationWork& work_;
  Widths w_;
  Timeline time_;
};

}  // namespace

ActivationBytes plan_activations(const Model& model, const ActivationWork& work) { return Walk(model, work).run(); }

}  // namespace zero
