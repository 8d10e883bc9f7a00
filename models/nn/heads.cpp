#include "models/nn/heads.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include "models/ops/rms_norm.h"
#include "models/parallel/activations.h"
#include "models/undivided.h"

namespace zero {

at::Tensor norm_groups(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const at::Tensor rows = x.reshape({-1, weight.size(0)}).contiguous();
  return rms_norm(rows, weight, eps).y.view(x.sizes());
}

namespace {

/// The RMSNorm of rows of which each rank has an equal part, in fp32 (fp64 for fp64), rounded once.
at::Tensor norm_shared(const at::Tensor& x, const at::Tensor& weight, double eps, const TokenSplit& split) {
  const Undivided sums;
  const at::Tensor precise = x.to(at::toOpMathType(x.scalar_type()));
  const at::Tensor squares = sum_parts(precise.square().sum(2, true), split);
  const at::Tensor rstd = squares.div(double(x.size(2) * split.ranks().size())).add(eps).rsqrt();
  return (precise * rstd * weight).to(x.scalar_type());
}

}  // namespace

at::Tensor norm_heads(const at::Tensor& qkv, const AttentionShape& shape, const at::Tensor& q_norm,
                      const at::Tensor& k_norm, double eps, const TokenSplit& shared) {
  const std::int64_t q = shape.heads * shape.head_dim, kv = shape.kv_heads * shape.head_dim;
  const auto parts = qkv.split_with_sizes({q, kv, kv}, 2);
  const auto normed = [&](const at::Tensor& part, const at::Tensor& weight) {
    return shared.divides() ? norm_shared(part, weight, eps, shared) : norm_groups(part, weight, eps);
  };
  return at::cat({normed(parts[0], q_norm), normed(parts[1], k_norm), parts[2]}, 2);
}

at::Tensor heads_in_order(const at::Tensor& qkv, const AttentionShape& shape, std::int64_t turned) {
  const std::int64_t still = (shape.head_dim - turned) / 2, rotated = shape.heads + shape.kv_heads;
  const at::Tensor heads = qkv.view({qkv.size(0), qkv.size(1), rotated + shape.kv_heads, shape.head_dim});
  const auto parts = heads.narrow(2, 0, rotated).split_with_sizes({turned / 2, turned / 2, still, still}, 3);
  const at::Tensor ordered = at::cat({parts[0], parts[2], parts[1], parts[3]}, 3);
  return at::cat({ordered, heads.narrow(2, rotated, shape.kv_heads)}, 2).view(qkv.sizes());
}

}  // namespace zero
