#include "models/ops/next_token_attention.h"

#include <ATen/ATen.h>

#include <vector>

#include "models/ops/kernels/query_attention.h"
#include "models/ops/row_dispatch.h"

namespace zero {
namespace {

bool is_taken(const at::Tensor& q, const KvCache::KeysValues& kept) {
  const auto fits = [&](const at::Tensor& rows) {
    return rows.is_cpu() && rows.scalar_type() == q.scalar_type() && rows.stride(3) == 1 &&
           rows.stride(2) == rows.size(3);
  };
  return q.is_cpu() && q.size(1) == 1 && fits(kept.k) && fits(kept.v);
}

template <class T>
at::Tensor attend(const at::Tensor& q, const KvCache::KeysValues& kept, const at::Tensor& mask, double scale) {
  const std::int64_t rows = q.size(0), kv_heads = kept.k.size(1), length = kept.k.size(2), head_dim = q.size(3);
  const std::int64_t heads = q.size(2) / kv_heads;  // that share keys and values
  const at::Tensor wide = q.to(at::kFloat).contiguous(), y = at::empty({rows, 1, q.size(2) * head_dim}, q.options());
  const at::Tensor seen = mask.defined() ? mask.expand({rows, 1, 1, length}).contiguous() : mask;
  by_rows(y, rows * kv_heads, heads * length * head_dim, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> weights(std::size_t(heads * length));
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i / kv_heads, kv_head = i % kv_heads, first = i * heads * head_dim;
      const auto of = [&](const at::Tensor& all) {
        return read_of<T>(all) + row * all.stride(0) + kv_head * all.stride(1);
      };
      kernels::attend_query<T>({read_of<float>(wide) + first, of(kept.k), of(kept.v),
                                seen.defined() ? read_of<bool>(seen) + row * length : nullptr, data_of<T>(y) + first,
                                heads, length, head_dim, float(scale), weights.data()});
    }
  });
  return y;
}

}  // namespace

at::Tensor next_token_attention(const at::Tensor& q, const KvCache::KeysValues& kept, const at::Tensor& mask,
                                double scale) {
  at::Tensor y;
  if (is_taken(q, kept))
    with_kernel_type(q.scalar_type(), [&](auto type) { y = attend<decltype(type)>(q, kept, mask, scale); });
  return y;
}

}  // namespace zero
