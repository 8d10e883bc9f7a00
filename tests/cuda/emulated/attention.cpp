// The fused attention kernels that LibTorch chooses among on a GPU, by their formulas in fp32 (fp64 for fp64). Groups of heads and results
// in the layout of the query, as theirs are. Dropout is not emulated.
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

struct Weights {
  Tensor q, k, v, p;  // [B, H, T, D], in the type of the sums; k and v once per head of q
  Tensor lse;         // [B, H, T]
};

Problem problem(const Tensor& q, const Tensor& k, const Tensor& v, const MaybeTensor& bias, bool causal, MaybeScale scale, double dropout) {
  if (dropout != 0) not_emulated("attention with dropout");
  return {Described(q), Described(k), Described(v), Described(bias.value_or(Tensor())), causal, scale.value_or(1.0 / std::sqrt(double(q.size(-1))))};
}

at::ScalarType sum_type(const Tensor& q) { return q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat; }

Weights attend(const Problem& problem) {
  const Tensor q = problem.q.on_cpu(), k = problem.k.on_cpu(), v = problem.v.on_cpu(), bias = problem.bias.on_cpu();
  const auto type = sum_type(q);
  const std::int64_t group = q.size(1) / k.size(1), T = q.size(2), S = k.size(2);
  Weights w{q.to(type), k.to(type).repeat_interleave(group, 1), v.to(type).repeat_interleave(group, 1), {}, {}};
  Tensor scores = at::matmul(w.q, w.k.transpose(-1, -2)) * problem.scale;
  if (bias.defined()) scores = scores + bias.to(type);
  if (problem.causal) scores = scores.masked_fill(at::ones({T, S}, at::kBool).triu(1), -std::numeric_limits<double>::infinity());
  w.lse = scores.logsumexp(-1);
  w.p = (scores - w.lse.unsqueeze(-1)).exp();
  return w;
}

struct Forward {
  Tensor out, lse;
};

Forward forward(const Tensor& q, const Problem& problem) {
  Forward result{at::empty_like(q), at::empty({q.size(0), q.size(1), q.size(2)}, q.options().dtype(sum_type(q)))};
  const Described out(result.out), lse(result.lse);
  defer(q, [problem, out, lse] {
    const Weights w = attend(problem);
    out.on_cpu().copy_(at::matmul(w.p, w.v));
    lse.on_cpu().copy_(w.lse);
  });
  return result;
}

std::tuple<Tensor, Tensor, Tensor> backward(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v, const Problem& problem) {
  const Tensor dq = at::empty_like(q), dk = at::empty_like(k), dv = at::empty_like(v);
  const Described to_q(dq), to_k(dk), to_v(dv), from(grad);
  defer(q, [=] {
    const Weights w = attend(problem);
    const Tensor dout = from.on_cpu().to(w.q.scalar_type()), dp = at::matmul(dout, w.v.transpose(-1, -2));
    const Tensor ds = w.p * (dp - (dp * w.p).sum(-1, true)) * problem.scale;
    const auto by_group = [](const Tensor& all, const Tensor& like) { return all.view({like.size(0), like.size(1), -1, like.size(2), like.size(3)}).sum(2); };
    to_q.on_cpu().copy_(at::matmul(ds, w.k));
    to_k.on_cpu().copy_(by_group(at::matmul(ds.transpose(-1, -2), w.q), to_k.on_cpu()));
    to_v.on_cpu().copy_(by_group(at::matmul(w.p.transpose(-1, -2), dout), to_v.on_cpu()));
  });
  return {dq, dk, dv};
}

Tensor number() { return at::zeros({}, at::kLong); }

std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor> cudnn(
    const Tensor& q, const Tensor& k, const Tensor& v, const MaybeTensor& bias, bool, double dropout, bool causal, bool, MaybeScale scale) {
  const Forward f = forward(q, problem(q, k, v, bias, causal, scale, dropout));
  return {f.out, f.lse, Tensor(), Tensor(), q.size(2), k.size(2), number(), number(), Tensor()};
}

std::tuple<Tensor, Tensor, Tensor> cudnn_backward(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor&, const Tensor&,
                                                  const Tensor&, const Tensor&, const Tensor& bias, const Tensor&, const Tensor&, c10::SymInt, c10::SymInt,
                                                  double dropout, bool causal, MaybeScale scale) {
  return backward(grad, q, k, v, problem(q, k, v, bias, causal, scale, dropout));
}

std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor> flash(const Tensor& q, const Tensor& k, const Tensor& v,
                                                                                                     double dropout, bool causal, bool, MaybeScale scale) {
  const Forward f = forward(q, problem(q, k, v, {}, causal, scale, dropout));
  return {f.out, f.lse, Tensor(), Tensor(), q.size(2), k.size(2), number(), number(), Tensor()};
}

std::tuple<Tensor, Tensor, Tensor> flash_backward(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor&, const Tensor&,
                                                  const Tensor&, const Tensor&, c10::SymInt, c10::SymInt, double dropout, bool causal, const Tensor&,
                                                  const Tensor&, MaybeScale scale) {
  return backward(grad, q, k, v, problem(q, k, v, {}, causal, scale, dropout));
}

std::tuple<Tensor, Tensor, Tensor, Tensor> efficient(const Tensor& q, const Tensor& k, const Tensor& v, const MaybeTensor& bias, bool, double dropout,
                                                     bool causal, MaybeScale scale) {
  const Forward f = forward(q, problem(q, k, v, bias, causal, scale, dropout));
  return {f.out, f.lse, number(), number()};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> efficient_backward(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& bias,
                                                              const Tensor&, const Tensor&, const Tensor&, const Tensor&, double dropout,
                                                              std::array<bool, 4> wanted, bool causal, MaybeScale scale) {
  if (wanted[3]) not_emulated("a gradient of attention's bias");
  const auto [dq, dk, dv] = backward(grad, q, k, v, problem(q, k, v, bias, causal, scale, dropout));
  return {dq, dk, dv, Tensor()};
}

}  // namespace

void register_attention(torch::Library& library) {
  library.impl("_scaled_dot_product_cudnn_attention", cudnn);
  library.impl("_scaled_dot_product_cudnn_attention_backward", cudnn_backward);
  library.impl("_scaled_dot_product_flash_attention", flash);
  library.impl("_scaled_dot_product_flash_attention_backward", flash_backward);
  library.impl("_scaled_dot_product_efficient_attention", efficient);
  library.impl("_scaled_dot_product_efficient_attention_backward", efficient_backward);
}

}  // namespace zero::emulated
