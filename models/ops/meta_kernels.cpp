#include "models/ops/meta_kernels.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

namespace zero {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t span_rounding = 128;  // document tokens, in the sums of a GPU's backward pass

struct DeviceAttentionOnMeta : torch::autograd::Function<DeviceAttentionOnMeta> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& qkv, const AttentionShape& shape, bool packed,
                            bool biased) {
    const std::int64_t B = qkv.size(0), T = qkv.size(1), width = shape.heads * shape.head_dim;
    const bool wide = qkv.scalar_type() == at::kFloat;
    at::Tensor repeated;
    if ((wide || biased) && shape.kv_heads < shape.heads) repeated = at::empty({2, B, T, width}, qkv.options());
    const at::Tensor out = at::empty({B, T, width}, qkv.options());
    if (wide && shape.window > 0 && shape.window < T) at::empty({packed ? B : 1, 1, T, T}, qkv.options());  // a mask
    context->save_for_backward({qkv, repeated, out, at::empty({B, shape.heads, T}, qkv.options().dtype(at::kFloat))});
    const std::int64_t padding = packed && !biased ? (B * T + span_rounding - 1) / span_rounding * span_rounding : 0;
    context->saved_data["sums"] = wide ? 0 : (B * T + padding) * width;
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor parts = at::empty_like(saved[0]), dqkv = at::empty_like(saved[0]),
                     sums = at::empty({context->saved_data["sums"].toInt()}, dqkv.options().dtype(at::kFloat)),
                     drepeated = saved[1].defined() ? at::empty_like(saved[1]) : at::Tensor();
    return {dqkv, {}, {}, {}};
  }
};

at::Tensor index_select(const at::Tensor& self, std::int64_t dim, const at::Tensor& index) {
  std::vector<std::int64_t> sizes = self.sizes().vec();
  sizes.at(std::size_t(dim)) = index.numel();
  return at::empty(sizes, self.options());
}

at::Tensor& abs_out(const at::Tensor& self, at::Tensor& out) {
  out.resize_(self.sizes());
  return out;
}

// The memory of LibTorch's CPU flash attention. Each thread has a tile of scores, in the wide type and, if narrower, in
// the queries' type, and rows of running sums.
struct Tile {
  std::int64_t queries, keys, threads;

  Tile(std::int64_t q_length, std::int64_t kv_length, bool backward)
      : queries(std::min<std::int64_t>(q_length, backward || q_length < 768 ? (q_length >= 192 ? 64 : 32) : 256)),
        keys(std::min<std::int64_t>(kv_length, 512)),
        threads(at::get_num_threads()) {}

  // Allocates and frees.
  void hold(const at::Tensor& query, std::int64_t scores, std::int64_t others) const {
    const at::ScalarType wide = at::toOpMathType(query.scalar_type());
    const at::Tensor own = at::empty({threads, scores * queries * keys + others}, query.options().dtype(wide));
    if (wide != query.scalar_type()) at::empty({threads, scores * queries * keys}, query.options());
  }
};

std::tuple<at::Tensor, at::Tensor> cpu_flash_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                                       double, bool, const std::optional<at::Tensor>&,
                                                       std::optional<double>) {
  const std::int64_t B = q.size(0), H = q.size(1), T = q.size(2), D = v.size(3);
  const at::Tensor out = at::empty({B, T, H, D}, q.options()),
                   lse = at::empty({B, T, H}, q.options().dtype(at::toOpMathType(q.scalar_type())));
  const Tile tile(T, k.size(2), false);
  tile.hold(q, 1, tile.queries * (2 + D));
  return {out.transpose(1, 2), lse.transpose(1, 2)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> cpu_flash_attention_backward(
    const at::Tensor&, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor&,
    const at::Tensor&, double, bool, const std::optional<at::Tensor>&, std::optional<double>) {
  const auto like = [](const at::Tensor& t) {
    return at::empty({t.size(0), t.size(2), t.size(1), t.size(3)}, t.options()).transpose(1, 2);
  };
  const std::tuple<at::Tensor, at::Tensor, at::Tensor> gradients{like(q), like(k), like(v)};
  const Tile tile(q.size(2), k.size(2), true);
  tile.hold(q, 2, tile.queries);
  return gradients;
}

}  // namespace

// Converts a bit mask to numbers, as on the CPU.
at::Tensor attend_on_meta(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask) {
  std::optional<at::Tensor> bias;
  if (mask.defined()) bias = at::empty(mask.sizes(), q.options());
  return std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, !bias, bias));
}

at::Tensor device_attention_on_meta(const at::Tensor& qkv, const AttentionShape& shape, bool packed, bool biased) {
  return DeviceAttentionOnMeta::apply(qkv, shape, packed, biased);
}

}  // namespace zero

TORCH_LIBRARY_IMPL(aten, Meta, m) {
  m.impl("index_select", zero::index_select);
  m.impl("abs.out", zero::abs_out);
  m.impl("_scaled_dot_product_flash_attention_for_cpu", zero::cpu_flash_attention);
  m.impl("_scaled_dot_product_flash_attention_for_cpu_backward", zero::cpu_flash_attention_backward);
}
