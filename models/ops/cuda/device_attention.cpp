#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>

#include "base/numbers/number_types.h"
#include "models/ops/checks.h"
#include "models/ops/cuda/device_operators.h"
#include "models/ops/cuda/rotary_launchers.h"

namespace zero::cuda {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class HeadsFunction : public torch::autograd::Function<HeadsFunction> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& qkv, const at::Tensor& cos,
                               const at::Tensor& sin, const std::optional<at::Tensor>& positions,
                               const AttentionShape& shape) {
    const c10::OptionalDeviceGuard guard(qkv.device());
    const at::Tensor rows = qkv.contiguous();
    context->save_for_backward({cos, sin, positions.value_or(at::Tensor())});
    context->saved_data["heads"] = shape.heads;
    context->saved_data["kv_heads"] = shape.kv_heads;
    rotate(rows.data_ptr(), turning(rows, shape, {cos, sin}, positions.value_or(at::Tensor())), stream_for(rows));
    if (rows.is_same(qkv)) torch::autograd::impl::bump_version(qkv);  // invalidates copies saved for backward
    // Detach: autograd must treat these as results of this function, not as views.
    const at::Tensor all = rows.detach().view({qkv.size(0), qkv.size(1), -1, shape.head_dim});
    return {all.narrow(2, 0, shape.heads).detach(), all.narrow(2, shape.heads, shape.kv_heads).detach(),
            all.narrow(2, shape.heads + shape.kv_heads, shape.kv_heads).detach()};
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    refuse_second_derivative("zero::attention");
    const variable_list saved = context->get_saved_variables();
    const AttentionShape shape{context->saved_data["heads"].toInt(), context->saved_data["kv_heads"].toInt(),
                               2 * saved[0].size(1)};
    const c10::OptionalDeviceGuard guard(grads[0].device());
    const at::Tensor dqkv = at::empty({grads[0].size(0), grads[0].size(1), shape.qkv_width()}, grads[0].options());
    for (at::Tensor& grad : grads)
      if (grad.stride(3) != 1) grad = grad.contiguous();
    pack_heads({part(grads[0]), part(grads[1]), part(grads[2]), dqkv.data_ptr(),
                turning(dqkv, shape, {saved[0], saved[1]}, saved[2])},
               stream_for(dqkv));
    return {dqkv, {}, {}, {}, {}};
  }

 private:
  static Stream stream_for(const at::Tensor& rows) {
    return {c10::cuda::getCurrentCUDAStream(rows.get_device()).stream(), number_of(rows.scalar_type())};
  }
  static Turning turning(const at::Tensor& qkv, const AttentionShape& shape, const Rotary::Table& table,
                         const at::Tensor& positions) {
    return {table.cos.const_data_ptr<float>(),
            table.sin.const_data_ptr<float>(),
            positions.defined() ? positions.const_data_ptr<std::int64_t>() : nullptr,
            qkv.size(0) * qkv.size(1),
            int(qkv.size(1)),
            int(shape.heads + shape.kv_heads),
            int(shape.head_dim),
            int(qkv.size(2))};
  }
  static HeadsGradient part(const at::Tensor& grad) {
    return {grad.const_data_ptr(), grad.stride(0), grad.stride(1), grad.stride(2), int(grad.size(2))};
  }
};

}  // namespace

TurnedHeads turn_heads(const at::Tensor& qkv, const AttentionShape& shape, const Rotary::Table& table,
                       const at::Tensor& positions) {
  const variable_list heads = HeadsFunction::apply(
      qkv, table.cos, table.sin, positions.defined() ? std::optional(positions.contiguous()) : std::nullopt, shape);
  return {heads[0], heads[1], heads[2]};
}

namespace {

/// A kernel rotates in place, then one of LibTorch's fused kernels attends. The heads stay in qkv. Those kernels draw
/// other random numbers, so dropout takes explicit products.
at::Tensor attention(const at::Tensor& qkv, const AttentionShape& shape, const Rotary::Table& table, const Batch& batch,
                     const HeadDropout& dropout) {
  if (!takes_type(qkv)) return composed::attention(qkv, shape, table, batch, dropout);
  const std::int64_t B = qkv.size(0), T = qkv.size(1), width = shape.heads * shape.head_dim;
  if (qkv.numel() == 0) return qkv.narrow(2, 0, width);
  TurnedHeads heads = turn_heads(qkv, shape, table, batch.positions);
  const bool drops = dropout.share > 0, half = qkv.scalar_type() != at::kFloat && shape.head_dim % 8 == 0 && !drops,
             windowed = shape.window > 0 && shape.window < T;
  const std::optional<double> scale = shape.scale > 0 ? std::optional(shape.scale) : std::nullopt;
  const auto before = windowed ? std::optional<std::int64_t>(shape.window - 1) : std::nullopt,
             after = windowed ? std::optional<std::int64_t>(0) : std::nullopt;
  if (half && batch.spans.defined()) {
    const auto tokens = [](const at::Tensor& part) { return part.flatten(0, 1); };
    const auto found =
        at::_flash_attention_forward(tokens(heads.q), tokens(heads.k), tokens(heads.v), batch.spans, batch.spans,
                                     batch.longest_span, batch.longest_span, 0.0,
                                     /*is_causal=*/true, /*return_debug_mask=*/false, scale, before, after);
    return std::get<0>(found).reshape({B, T, width});
  }
  if (half && windowed && !batch.documents.defined()) {
    const auto found =
        at::_flash_attention_forward(heads.q, heads.k, heads.v, {}, {}, T, T, 0.0,
                                     /*is_causal=*/true, /*return_debug_mask=*/false, scale, before, after);
    return std::get<0>(found).reshape({B, T, width});
  }
  for (at::Tensor* part : {&heads.q, &heads.k, &heads.v}) *part = part->transpose(1, 2);
  at::Tensor mask = batch.bias.defined() ? batch.bias : document_mask(batch.documents);
  if (const at::Tensor window = window_mask(T, shape.window, qkv.device()); window.defined())
    mask = !mask.defined()                   ? window
           : mask.scalar_type() == at::kBool ? mask & window
                                             : mask.masked_fill(window.logical_not(), -INFINITY);
  // The kernel for fp32 or a mask does not support grouped heads.
  if (!drops && (qkv.scalar_type() == at::kFloat || mask.defined()))
    for (at::Tensor* part : {&heads.k, &heads.v}) *part = part->repeat_interleave(shape.heads / shape.kv_heads, 1);
  return composed::attend(heads.q, heads.k, heads.v, mask, {.causal = true, .scale = shape.scale, .dropout = dropout});
}

}  // namespace

void register_attention(torch::Library& library) {
  library.impl("attention", checked<check::attention, attention_operation<attention>>);
}

}  // namespace zero::cuda
