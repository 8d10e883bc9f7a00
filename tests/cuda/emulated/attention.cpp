// The fused attention kernels that LibTorch chooses among on a GPU, by their formulas in fp32 (fp64 for fp64). Groups
// of heads and results in the layout of the query, as theirs are. Dropout is not emulated.
#include <ATen/ATen.h>
#include <torch/library.h>

#include "tests/cuda/emulated/operations.h"

namespace zero::emulated {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;
using MaybeScale = std::optional<double>;

struct Problem {
  Described q, k, v, bias;
  bool causal;
  double scale;
};

/// The same as its task sees it, in host memory.
struct Opened {
  Tensor q, k, v, bias;  // [B, heads, T, D]
  bool causal;
  double scale;

  explicit Opened(const Problem& p)
      : q(p.q.on_cpu()), k(p.k.on_cpu()), v(p.v.on_cpu()), bias(p.bias.on_cpu()), causal(p.causal), scale(p.scale) {}
};

struct Weights {
  Tensor q, k, v, p;  // [B, H, T, D], in the type of the sums; k and v once per head of q
  Tensor lse;         // [B, H, T]
};

Problem problem(const Tensor& q, const Tensor& k, const Tensor& v, const MaybeTensor& bias, bool causal,
                MaybeScale scale, double dropout) {
  if (dropout != 0) not_emulated("attention with dropout");
  return {Described(q), Described(k),
          Described(v), Described(bias.value_or(Tensor())),
          causal,       scale.value_or(1.0 / std::sqrt(double(q.size(-1))))};
}

at::ScalarType sum_type(const Tensor& q) { return q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat; }

Weights attend(const Opened& problem) {
  const auto& [q, k, v, bias, causal, scale] = problem;
  const auto type = sum_type(q);
  const std::int64_t group = q.size(1) / k.size(1), T = q.size(2), S = k.size(2);
  Weights w{q.to(type), k.to(type).repeat_interleave(group, 1), v.to(type).repeat_interleave(group, 1), {}, {}};
  Tensor scores = at::matmul(w.q, w.k.transpose(-1, -2)) * scale;
  if (bias.defined()) scores = scores + bias.to(type);
  if (causal)
    scores = scores.masked_fill(at::ones({T, S}, at::kBool).triu(1), -std::numeric_limits<double>::infinity());
  w.lse = scores.logsumexp(-1);
  w.p = (scores - w.lse.unsqueeze(-1)).exp();
  return w;
}

/// Gradients of q, k and v, in the type of the sums.
std::array<Tensor, 3> gradients(const Opened& problem, const Tensor& grad) {
  const Weights w = attend(problem);
  const Tensor dout = grad.to(w.q.scalar_type()), dp = at::matmul(dout, w.v.transpose(-1, -2));
  const Tensor ds = w.p * (dp - (dp * w.p).sum(-1, true)) * problem.scale;
  const auto by_group = [](const Tensor& all, const Tensor& like) {
    return all.view({like.size(0), like.size(1), -1, like.size(2), like.size(3)}).sum(2);
  };
  return {at::matmul(ds, w.k), by_group(at::matmul(ds.transpose(-1, -2), w.q), problem.k),
          by_group(at::matmul(w.p.transpose(-1, -2), dout), problem.v)};
}

struct Forward {
  Tensor out, lse;
};

Forward forward(const Tensor& q, const Problem& problem) {
  Forward result{at::empty_like(q), at::empty({q.size(0), q.size(1), q.size(2)}, q.options().dtype(sum_type(q)))};
  const Described out(result.out), lse(result.lse);
  defer(q, [problem, out, lse] {
    const Weights w = attend(Opened(problem));
    out.on_cpu().copy_(at::matmul(w.p, w.v));
    lse.on_cpu().copy_(w.lse);
  });
  return result;
}

std::tuple<Tensor, Tensor, Tensor> backward(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v,
                                            const Problem& problem) {
  const Tensor dq = at::empty_like(q), dk = at::empty_like(k), dv = at::empty_like(v);
  const Described to_q(dq), to_k(dk), to_v(dv), from(grad);
  defer(q, [=] {
    const auto [on_q, on_k, on_v] = gradients(Opened(problem), from.on_cpu());
    to_q.on_cpu().copy_(on_q);
    to_k.on_cpu().copy_(on_k);
    to_v.on_cpu().copy_(on_v);
  });
  return {dq, dk, dv};
}

Tensor number() { return at::zeros({}, at::kLong); }

std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor> cudnn(
    const Tensor& q, const Tensor& k, const Tensor& v, const MaybeTensor& bias, bool, double dropout, bool causal, bool,
    MaybeScale scale) {
  const Forward f = forward(q, problem(q, k, v, bias, causal, scale, dropout));
  return {f.out, f.lse, Tensor(), Tensor(), q.size(2), k.size(2), number(), number(), Tensor()};
}

std::tuple<Tensor, Tensor, Tensor> cudnn_backward(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v,
                                                  const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                                  const Tensor& bias, const Tensor&, const Tensor&, c10::SymInt,
                                                  c10::SymInt, double dropout, bool causal, MaybeScale scale) {
  return backward(grad, q, k, v, problem(q, k, v, bias, causal, scale, dropout));
}

std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor> flash(
    const Tensor& q, const Tensor& k, const Tensor& v, double dropout, bool causal, bool, MaybeScale scale) {
  const Forward f = forward(q, problem(q, k, v, {}, causal, scale, dropout));
  return {f.out, f.lse, Tensor(), Tensor(), q.size(2), k.size(2), number(), number(), Tensor()};
}

std::tuple<Tensor, Tensor, Tensor> flash_backward(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v,
                                                  const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                                  c10::SymInt, c10::SymInt, double dropout, bool causal, const Tensor&,
                                                  const Tensor&, MaybeScale scale) {
  return backward(grad, q, k, v, problem(q, k, v, {}, causal, scale, dropout));
}

std::tuple<Tensor, Tensor, Tensor, Tensor> efficient(const Tensor& q, const Tensor& k, const Tensor& v,
                                                     const MaybeTensor& bias, bool, double dropout, bool causal,
                                                     MaybeScale scale) {
  const Forward f = forward(q, problem(q, k, v, bias, causal, scale, dropout));
  return {f.out, f.lse, number(), number()};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> efficient_backward(const Tensor& grad, const Tensor& q, const Tensor& k,
                                                              const Tensor& v, const Tensor& bias, const Tensor&,
                                                              const Tensor&, const Tensor&, const Tensor&,
                                                              double dropout, std::array<bool, 4> wanted, bool causal,
                                                              MaybeScale scale) {
  if (wanted[3]) not_emulated("a gradient of attention's bias");
  const auto [dq, dk, dv] = backward(grad, q, k, v, problem(q, k, v, bias, causal, scale, dropout));
  return {dq, dk, dv, Tensor()};
}

/// f(begin, count) for each span of tokens.
template <class F>
void for_spans(const Described& spans, F f) {
  const Tensor begins = spans.on_cpu();
  for (std::int64_t s = 0; s + 1 < begins.numel(); ++s)
    f(begins[s].item<std::int64_t>(), (begins[s + 1] - begins[s]).item<std::int64_t>());
}

/// The tokens of one span, of tensors [tokens, heads, D], as [1, heads, T, D].
Tensor span_of(const Tensor& tokens, std::int64_t begin, std::int64_t count) {
  return tokens.narrow(0, begin, count).transpose(0, 1).unsqueeze(0);
}

Opened span_of(const Problem& problem, std::int64_t begin, std::int64_t count) {
  Opened opened(problem);
  for (Tensor* each : {&opened.q, &opened.k, &opened.v}) *each = span_of(*each, begin, count);
  return opened;
}

void check_spans(const MaybeTensor& of_q, const MaybeTensor& of_k, c10::SymInt longest_q, c10::SymInt longest_k) {
  if (!of_q || !of_k || of_q->data_ptr() != of_k->data_ptr() || longest_q != longest_k)
    not_emulated("attention between unlike spans");
  if (of_q->scalar_type() != at::kInt) not_emulated("spans that are not int32");
}

/// A longer span than was said is what a kernel would cut off.
void check_longest(std::int64_t count, std::int64_t longest) {
  if (count > longest) not_emulated("a span that is longer than the longest");
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> flash_spans(const Tensor& q, const Tensor& k, const Tensor& v,
                                                               const MaybeTensor& spans_q, const MaybeTensor& spans_k,
                                                               c10::SymInt longest_q, c10::SymInt longest_k,
                                                               double dropout, bool causal, bool, MaybeScale scale,
                                                               std::optional<c10::SymInt>, std::optional<c10::SymInt>,
                                                               const MaybeTensor&, const MaybeTensor&) {
  check_spans(spans_q, spans_k, longest_q, longest_k);
  if (q.scalar_type() == at::kFloat || q.size(-1) % 8 != 0) not_emulated("flash attention of such heads");
  const Problem whole = problem(q, k, v, {}, causal, scale, dropout);
  const Tensor out = at::empty(q.sizes(), q.options()),
               lse = at::empty({q.size(1), q.size(0)}, q.options().dtype(at::kFloat));
  const Described to(out), to_lse(lse), spans(*spans_q);
  defer(q, [whole, to, to_lse, spans, longest = longest_q.expect_int()] {
    for_spans(spans, [&](std::int64_t begin, std::int64_t count) {
      check_longest(count, longest);
      const Weights w = attend(span_of(whole, begin, count));
      span_of(to.on_cpu(), begin, count).copy_(at::matmul(w.p, w.v));
      to_lse.on_cpu().narrow(1, begin, count).copy_(w.lse[0]);
    });
  });
  return {out, lse, number(), number(), Tensor()};
}

std::tuple<Tensor, Tensor, Tensor> flash_spans_backward(const Tensor& grad, const Tensor& q, const Tensor& k,
                                                        const Tensor& v, const Tensor&, const Tensor&,
                                                        const Tensor& spans_q, const Tensor& spans_k,
                                                        c10::SymInt longest_q, c10::SymInt longest_k, double dropout,
                                                        bool causal, const Tensor&, const Tensor&, MaybeScale scale,
                                                        std::optional<c10::SymInt>, std::optional<c10::SymInt>) {
  check_spans(spans_q, spans_k, longest_q, longest_k);
  const Problem whole = problem(q, k, v, {}, causal, scale, dropout);
  const Tensor dq = at::empty(q.sizes(), q.options()), dk = at::empty(k.sizes(), k.options()),
               dv = at::empty(v.sizes(), v.options());
  const Described to_q(dq), to_k(dk), to_v(dv), from(grad), spans(spans_q);
  defer(q, [=] {
    for_spans(spans, [&](std::int64_t begin, std::int64_t count) {
      const auto [on_q, on_k, on_v] = gradients(span_of(whole, begin, count), span_of(from.on_cpu(), begin, count));
      span_of(to_q.on_cpu(), begin, count).copy_(on_q);
      span_of(to_k.on_cpu(), begin, count).copy_(on_k);
      span_of(to_v.on_cpu(), begin, count).copy_(on_v);
    });
  });
  return {dq, dk, dv};
}

}  // namespace

void register_attention(torch::Library& library) {
  library.impl("_scaled_dot_product_cudnn_attention", cudnn);
  library.impl("_scaled_dot_product_cudnn_attention_backward", cudnn_backward);
  library.impl("_scaled_dot_product_flash_attention", flash);
  library.impl("_scaled_dot_product_flash_attention_backward", flash_backward);
  library.impl("_flash_attention_forward", flash_spans);
  library.impl("_flash_attention_backward", flash_spans_backward);
  library.impl("_scaled_dot_product_efficient_attention", efficient);
  library.impl("_scaled_dot_product_efficient_attention_backward", efficient_backward);
}

}  // namespace zero::emulated
