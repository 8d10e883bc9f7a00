#include "models/ops/attention.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "models/ops/attention_function.h"
#include "models/ops/cuda/device_rows.h"
#include "models/ops/kv_cache.h"
#include "models/ops/meta_kernels.h"

namespace zero {

namespace {

struct Heads {
  at::Tensor q, k, v;  // [B, T, heads or kv_heads, head_dim]
};

Heads split_and_rotate(const at::Tensor& qkv, const AttentionShape& shape, const Rotary::Table& table,
                       const at::Tensor& positions) {
  const auto parts = qkv.view({qkv.size(0), qkv.size(1), shape.heads + 2 * shape.kv_heads, shape.head_dim})
                         .split_with_sizes({shape.heads, shape.kv_heads, shape.kv_heads}, 2);
  return {rotate(parts[0], table, positions), rotate(parts[1], table, positions), parts[2]};
}

/// [B, T, heads x head_dim] of [B, heads, T, head_dim]. Every size has its name: a rank without rows has B = 0.
at::Tensor join_heads(const at::Tensor& y_BHTD, const AttentionShape& shape) {
  return y_BHTD.transpose(1, 2).reshape({y_BHTD.size(0), y_BHTD.size(2), shape.heads * shape.head_dim});
}

at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask, bool causal) {
  if (q.is_meta()) return attend_on_meta(q, k, v, mask);
  const std::optional<at::Tensor> attn_mask = mask.defined() ? std::optional(mask) : std::nullopt;
  return at::scaled_dot_product_attention(q, k, v, attn_mask, 0.0, causal && !mask.defined(), std::nullopt,
                                          q.size(1) != k.size(1));
}

/// Attention in LibTorch's operations, for every type and device.
at::Tensor composed_attention(const at::Tensor& qkv, const AttentionShape& shape, const Rotary::Table& table,
                              const Batch& batch) {
  const Heads heads = split_and_rotate(qkv, shape, table, batch.positions);
  const at::Tensor y_BHTD = attend(heads.q.transpose(1, 2), heads.k.transpose(1, 2), heads.v.transpose(1, 2),
                                   document_mask(batch.documents), true);
  return join_heads(y_BHTD, shape);
}

/// On a GPU: rotation by a kernel, attention by one of LibTorch's fused ones. The heads stay views of the rotated qkv.
at::Tensor device_attention(const at::Tensor& qkv, const AttentionShape& shape, const Rotary::Table& table,
                            const Batch& batch) {
  const std::int64_t B = qkv.size(0), T = qkv.size(1), all_heads = shape.heads + 2 * shape.kv_heads,
                     width = shape.heads * shape.head_dim;
  if (qkv.numel() == 0) return qkv.narrow(2, 0, width);
  const at::Tensor rotated = cuda::rotate_qkv(qkv, table, batch.positions, shape.heads + shape.kv_heads);
  const std::vector<std::int64_t> sizes{shape.heads, shape.kv_heads, shape.kv_heads};
  if (batch.spans.defined() && qkv.scalar_type() != at::kFloat && shape.head_dim % 8 == 0) {
    const auto parts = rotated.view({B * T, all_heads, shape.head_dim}).split_with_sizes(sizes, 1);
    const auto found = at::_flash_attention_forward(parts[0], parts[1], parts[2], batch.spans, batch.spans,
                                                    batch.longest_span, batch.longest_span, 0.0,
                                                    /*is_causal=*/true, /*return_debug_mask=*/false);
    return std::get<0>(found).reshape({B, T, width});
  }
  auto parts = rotated.view({B, T, all_heads, shape.head_dim}).split_with_sizes(sizes, 2);
  for (at::Tensor& part : parts) part = part.transpose(1, 2);
  const at::Tensor mask = batch.bias.defined() ? batch.bias : document_mask(batch.documents);
  // The kernel that takes fp32 or a mask knows no groups of heads.
  if (qkv.scalar_type() == at::kFloat || mask.defined())
    for (int i : {1, 2}) parts[i] = parts[i].repeat_interleave(shape.heads / shape.kv_heads, 1);
  return join_heads(attend(parts[0], parts[1], parts[2], mask, true), shape);
}

}  // namespace

at::Tensor document_mask(const at::Tensor& documents) {
  if (!documents.defined()) return {};
  const std::int64_t T = documents.size(1);
  const at::Tensor document = documents.unsqueeze(2), theirs = documents.unsqueeze(1);
  const at::Tensor all = at::arange(T, documents.options().dtype(at::kLong));
  const at::Tensor distance = all.unsqueeze(1) - all.unsqueeze(0);
  const at::Tensor same = (document == theirs) & (document >= 0) & (distance >= 0);
  return (same | (distance == 0)).unsqueeze(1);
}

at::Tensor attention(const at::Tensor& qkv, const AttentionShape& shape, Rotary& rotary, const Batch& batch) {
  ZERO_CHECK(qkv.size(-1) == shape.qkv_width(), "qkv does not have the width of its heads");
  if (cuda::takes_type(qkv))  // a row's positions are below its length; asking the device would wait for it
    return device_attention(qkv, shape, rotary.table(qkv.size(1), qkv.scalar_type(), qkv.device()), batch);
  if (qkv.is_meta() && batch.meta.device == at::kCUDA) {
    rotary.table(qkv.size(1), qkv.scalar_type(), qkv.device());  // which stays
    return device_attention_on_meta(qkv, shape, batch.documents.defined());
  }
  const bool known = batch.positions.defined() && batch.positions.numel() > 0 && !batch.positions.is_meta();
  const std::int64_t positions = known ? batch.positions.max().item<std::int64_t>() + 1 : qkv.size(1);
  const Rotary::Table table = rotary.table(positions, qkv.scalar_type(), qkv.device());
  const at::Tensor y = kernel_attention(qkv, shape, table, batch);
  return y.defined() ? y : composed_attention(qkv, shape, table, batch);
}

at::Tensor cached_attention(const at::Tensor& qkv, const AttentionShape& shape, Rotary& rotary, const Batch& batch,
                            const CacheLayer& place) {
  KvCache& cache = place.cache;
  const Rotary::Table table = rotary.table(cache.capacity(), qkv.scalar_type(), qkv.device());
  const std::int64_t T = qkv.size(1);
  const at::Tensor positions =
      batch.positions.defined()
          ? batch.positions
          : at::arange(cache.length() - T, cache.length(), batch.ids.options()).expand({qkv.size(0), T});
  const Heads heads = split_and_rotate(qkv, shape, table, positions);
  const KvCache::KeysValues all = cache.append(place.layer, heads.k, heads.v);
  const at::Tensor y_BHTD = attend(heads.q.transpose(1, 2), all.k, all.v, cache.mask(), false);
  return join_heads(y_BHTD, shape);
}

}  // namespace zero
