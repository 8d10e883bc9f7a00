#include "models/nn/heads.h"

#include <ATen/ATen.h>

#include "models/ops/rms_norm.h"

namespace zero {

at::Tensor norm_groups(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const at::Tensor rows = x.reshape({-1, weight.size(0)}).contiguous();
  return rms_norm(rows, weight, eps).y.view(x.sizes());
}

at::Tensor norm_heads(const at::Tensor& qkv, const AttentionShape& shape, const at::Tensor& q_norm,
                      const at::Tensor& k_norm, double eps) {
  const std::int64_t q = shape.heads * shape.head_dim, kv = shape.kv_heads * shape.head_dim;
  const auto parts = qkv.split_with_sizes({q, kv, kv}, 2);
  return at::cat({norm_groups(parts[0], q_norm, eps), norm_groups(parts[1], k_norm, eps), parts[2]}, 2);
}

at::Tensor heads_in_order(const at::Tensor& qkv, const AttentionShape& shape, std::int64_t turned) {
  const std::int64_t still = (shape.head_dim - turned) / 2, rotated = shape.heads + shape.kv_heads;
  const at::Tensor heads = qkv.view({qkv.size(0), qkv.size(1), rotated + shape.kv_heads, shape.head_dim});
  const auto parts = heads.narrow(2, 0, rotated).split_with_sizes({turned / 2, turned / 2, still, still}, 3);
  const at::Tensor ordered = at::cat({parts[0], parts[2], parts[1], parts[3]}, 3);
  return at::cat({ordered, heads.narrow(2, rotated, shape.kv_heads)}, 2).view(qkv.sizes());
}

}  // namespace zero
