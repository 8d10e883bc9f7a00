#include "models/ops/attention.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>

#include "base/activity_clock.h"
#include "models/ops/attention_function.h"
#include "models/ops/backends.h"
#include "models/ops/dropped_attention.h"
#include "models/ops/kv_cache.h"
#include "models/ops/matrix_product.h"
#include "models/ops/meta_kernels.h"
#include "models/ops/next_token_attention.h"
#include "models/undivided.h"

namespace zero {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct AttentionTerms {
  at::Tensor q, k, v;              // [B, heads or kv_heads, T, head_dim]
  std::optional<at::Tensor> mask;  // bool, without gradient
  bool causal = false;
  std::optional<double> scale;
};

at::Tensor product_attention(const AttentionTerms& terms) {
  return at::scaled_dot_product_attention(terms.q, terms.k, terms.v, terms.mask, 0.0, terms.causal && !terms.mask,
                                          terms.scale, terms.q.size(1) != terms.k.size(1));
}

/// Returns the same bits for any number of threads. LibTorch's loops would give each thread different memory, which
/// changes how products end. Backward recomputes the values that forward would have saved.
class UndividedAttention : public torch::autograd::Function<UndividedAttention> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const AttentionTerms& rest) {
    context->save_for_backward({q, k, v, rest.mask.value_or(at::Tensor())});
    context->saved_data["causal"] = rest.causal;
    context->saved_data["scale"] = rest.scale;
    at::Tensor y;
    undivided([&] { y = product_attention({q, k, v, rest.mask, rest.causal, rest.scale}); });
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const ActivityScope scope(Activity::attention);
    const at::AutoGradMode with_grad(true);
    const variable_list saved = context->get_saved_variables();
    variable_list wanted;
    for (std::size_t i = 0; i < 3; ++i) wanted.push_back(saved[i].detach().set_requires_grad(true));
    const auto mask = saved[3].defined() ? std::optional(saved[3]) : std::nullopt;
    const AttentionTerms terms{wanted[0],
                               wanted[1],
                               wanted[2],
                               mask,
                               context->saved_data["causal"].toBool(),
                               context->saved_data["scale"].toOptional<double>()};
    variable_list found;
    undivided([&] { found = torch::autograd::grad({product_attention(terms)}, wanted, {grads[0]}); });
    found.resize(4);
    return found;
  }
};

struct Heads {
  at::Tensor q, k, v;  // [B, T, heads or kv_heads, head_dim]
};

Heads split_and_rotate(const at::Tensor& qkv, const AttentionShape& shape, const Rotary::Table& table,
                       const at::Tensor& positions) {
  const auto parts = qkv.view({qkv.size(0), qkv.size(1), shape.heads + 2 * shape.kv_heads, shape.head_dim})
                         .split_with_sizes({shape.heads, shape.kv_heads, shape.kv_heads}, 2);
  return {rotate(parts[0], table, positions), rotate(parts[1], table, positions), parts[2]};
}

/// [B, heads, T, head_dim] as [B, T, heads * head_dim]. Names every size, since a rank without rows has B = 0.
at::Tensor tokens_of(const at::Tensor& y) {
  return y.transpose(1, 2).reshape({y.size(0), y.size(2), y.size(1) * y.size(3)});
}

}  // namespace

at::Tensor composed::attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask,
                            const AttendOptions& options) {
  if (options.dropout.share > 0) return tokens_of(dropped_attention(q, k, v, mask, options));
  if (!q.is_cuda() && widened_on_cpu(q.scalar_type()))
    return attend(q.to(at::kFloat), k.to(at::kFloat), v.to(at::kFloat), mask, options).to(q.scalar_type());
  const AttentionTerms terms{q,
                             k,
                             v,
                             mask.defined() ? std::optional(mask) : std::nullopt,
                             options.causal,
                             options.scale > 0 ? std::optional(options.scale) : std::nullopt};
  const bool divided = q.is_cpu() && at::globalContext().deterministicAlgorithms() && at::get_num_threads() > 1;
  const at::Tensor y = q.is_meta() ? attend_on_meta(q, k, v, mask)
                       : divided   ? UndividedAttention::apply(q, k, v, terms)
                                   : product_attention(terms);
  return tokens_of(y);
}

at::Tensor document_mask(const at::Tensor& documents) {
  if (!documents.defined()) return {};
  const std::int64_t T = documents.size(1);
  const at::Tensor document = documents.unsqueeze(2), theirs = documents.unsqueeze(1);
  const at::Tensor all = at::arange(T, documents.options().dtype(at::kLong));
  const at::Tensor distance = all.unsqueeze(1) - all.unsqueeze(0);
  const at::Tensor same = (document == theirs) & (document != -1);
  const at::Tensor trunk = (theirs < -1) & ((document == -2 - theirs) | (document == -1 - theirs));
  return (((same | trunk) & (distance >= 0)) | (distance == 0)).unsqueeze(1);
}

at::Tensor window_mask(std::int64_t length, std::int64_t window, at::Device device) {
  if (window <= 0 || window >= length) return {};
  const at::Tensor all = at::arange(length, at::TensorOptions().dtype(at::kLong).device(device));
  const at::Tensor distance = all.unsqueeze(1) - all.unsqueeze(0);
  return ((distance >= 0) & (distance < window)).unsqueeze(0).unsqueeze(0);
}

// A row's positions are below its length; reading them from a device would synchronise.
std::int64_t composed::table_rows(const at::Tensor& qkv, const std::optional<at::Tensor>&) { return qkv.size(1); }

std::int64_t cpu::table_rows(const at::Tensor& qkv, const std::optional<at::Tensor>& positions) {
  const bool known = positions && positions->defined() && positions->numel() > 0;
  return known ? positions->max().item<std::int64_t>() + 1 : qkv.size(1);
}

at::Tensor composed::attention(const at::Tensor& qkv, const AttentionShape& shape, const Rotary::Table& table,
                               const Batch& batch, const HeadDropout& dropout) {
  const Heads heads = split_and_rotate(qkv, shape, table, batch.positions);
  at::Tensor mask = document_mask(batch.documents);
  if (const at::Tensor window = window_mask(qkv.size(1), shape.window, qkv.device()); window.defined())
    mask = mask.defined() ? mask & window : window;
  return attend(heads.q.transpose(1, 2), heads.k.transpose(1, 2), heads.v.transpose(1, 2), mask,
                {.causal = true, .scale = shape.scale, .dropout = dropout});
}

at::Tensor cpu::attention(const at::Tensor& qkv, const AttentionShape& shape, const Rotary::Table& table,
                          const Batch& batch, const HeadDropout& dropout) {
  const at::Tensor y = kernel_attention(qkv, shape, table, batch, dropout);
  return y.defined() ? y : composed::attention(qkv, shape, table, batch, dropout);
}

at::Tensor meta::attention(const at::Tensor& qkv, const AttentionShape& shape, const Rotary::Table& table,
                           const Batch& batch, const HeadDropout& dropout) {
  if (batch.meta.device != at::kCUDA) return cpu::attention(qkv, shape, table, batch, dropout);
  if (dropout.share > 0) return composed::attention(qkv, shape, table, batch, dropout);
  return device_attention_on_meta(qkv, shape, batch.documents.defined(), batch.bias.defined());
}

at::Tensor cached_attention(const at::Tensor& qkv, const AttentionShape& shape, Rotary& rotary, const Batch& batch,
                            const CacheLayer& place) {
  const ActivityScope scope(Activity::attention);
  KvCache& cache = place.cache;
  const std::int64_t T = qkv.size(1);
  const at::Tensor positions =
      batch.positions.defined()
          ? batch.positions
          : at::arange(cache.length() - T, cache.length(), batch.ids.options()).expand({qkv.size(0), T});
  const Rotary::Table table = rotary.table(cache.capacity(), qkv.scalar_type(), qkv.device());
  const at::Tensor rows = rotary.rows(qkv, positions, batch.documents, cache.capacity());
  const Heads heads = split_and_rotate(qkv, shape, table, rows);
  const KvCache::KeysValues all = cache.append(place.layer, heads.k, heads.v);
  const at::Tensor& mask = cache.mask(shape.window);
  const double scale = shape.scale > 0 ? shape.scale : 1 / std::sqrt(double(shape.head_dim));
  const at::Tensor y = next_token_attention(heads.q, all, mask, scale);
  if (y.defined()) return y;
  return composed::attend(heads.q.transpose(1, 2), all.k, all.v, mask, {.causal = false, .scale = shape.scale});
}

}  // namespace zero
