#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>

#include "base/numbers/number_types.h"
#include "models/ops/backends.h"
#include "models/ops/cuda/device_operators.h"
#include "models/ops/cuda/row_launchers.h"

namespace zero::cuda {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Turn {
  at::Tensor cos, sin, positions;
  std::int64_t heads;
};

at::Tensor turn(const at::Tensor& qkv, const Turn& how, bool back) {
  const c10::OptionalDeviceGuard guard(qkv.device());
  const at::Tensor in = qkv.contiguous(), out = at::empty_like(in);
  const std::int64_t half = how.cos.size(1);
  const std::int64_t* positions = how.positions.defined() ? how.positions.const_data_ptr<std::int64_t>() : nullptr;
  rotate(RotateJob{in.const_data_ptr(), out.data_ptr(), how.cos.const_data_ptr<float>(),
                   how.sin.const_data_ptr<float>(), positions, in.size(0) * in.size(1), int(in.size(1)), int(how.heads),
                   int(2 * half), int(in.size(2)), back},
         {c10::cuda::getCurrentCUDAStream(in.get_device()).stream(), number_of(in.scalar_type())});
  return out;
}

class RotateFunction : public torch::autograd::Function<RotateFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& qkv, const at::Tensor& cos,
                            const at::Tensor& sin, const std::optional<at::Tensor>& positions, std::int64_t heads) {
    context->save_for_backward({cos, sin, positions.value_or(at::Tensor())});
    context->saved_data["heads"] = heads;
    return turn(qkv, {cos, sin, positions.value_or(at::Tensor()), heads}, false);
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    refuse_second_derivative("zero::attention");
    const variable_list saved = context->get_saved_variables();
    return {turn(grads[0], {saved[0], saved[1], saved[2], context->saved_data["heads"].toInt()}, true), {}, {}, {}, {}};
  }
};

}  // namespace

at::Tensor rotate_qkv(const at::Tensor& qkv, const Rotary::Table& table, const at::Tensor& positions,
                      std::int64_t turned) {
  return RotateFunction::apply(qkv, table.cos, table.sin,
                               positions.defined() ? std::optional(positions.contiguous()) : std::nullopt, turned);
}

namespace {

/// Rotation by a kernel, attention by one of LibTorch's fused ones. The heads stay views of the rotated qkv.
at::Tensor attention(const at::Tensor& qkv, const AttentionShape& shape, const Rotary::Table& table,
                     const Batch& batch) {
  if (!takes_type(qkv)) return composed::attention(qkv, shape, table, batch);
  const std::int64_t B = qkv.size(0), T = qkv.size(1), all_heads = shape.heads + 2 * shape.kv_heads,
                     width = shape.heads * shape.head_dim;
  if (qkv.numel() == 0) return qkv.narrow(2, 0, width);
  const at::Tensor rotated = rotate_qkv(qkv, table, batch.positions, shape.heads + shape.kv_heads);
  const std::vector<std::int64_t> sizes{shape.heads, shape.kv_heads, shape.kv_heads};
  const bool half = qkv.scalar_type() != at::kFloat && shape.head_dim % 8 == 0,
             windowed = shape.window > 0 && shape.window < T;
  const std::optional<double> scale = shape.scale > 0 ? std::optional(shape.scale) : std::nullopt;
  const auto before = windowed ? std::optional<std::int64_t>(shape.window - 1) : std::nullopt,
             after = windowed ? std::optional<std::int64_t>(0) : std::nullopt;
  if (half && batch.spans.defined()) {
    const auto parts = rotated.view({B * T, all_heads, shape.head_dim}).split_with_sizes(sizes, 1);
    const auto found = at::_flash_attention_forward(
        parts[0], parts[1], parts[2], batch.spans, batch.spans, batch.longest_span, batch.longest_span, 0.0,
        /*is_causal=*/true, /*return_debug_mask=*/false, scale, before, after);
    return std::get<0>(found).reshape({B, T, width});
  }
  if (half && windowed && !batch.documents.defined()) {
    const auto parts = rotated.view({B, T, all_heads, shape.head_dim}).split_with_sizes(sizes, 2);
    const auto found =
        at::_flash_attention_forward(parts[0], parts[1], parts[2], {}, {}, T, T, 0.0,
                                     /*is_causal=*/true, /*return_debug_mask=*/false, scale, before, after);
    return std::get<0>(found).reshape({B, T, width});
  }
  auto parts = rotated.view({B, T, all_heads, shape.head_dim}).split_with_sizes(sizes, 2);
  for (at::Tensor& part : parts) part = part.transpose(1, 2);
  at::Tensor mask = batch.bias.defined() ? batch.bias : document_mask(batch.documents);
  if (const at::Tensor window = window_mask(T, shape.window, qkv.device()); window.defined())
    mask = !mask.defined()                   ? window
           : mask.scalar_type() == at::kBool ? mask & window
                                             : mask.masked_fill(window.logical_not(), -INFINITY);
  // The kernel that takes fp32 or a mask knows no groups of heads.
  if (qkv.scalar_type() == at::kFloat || mask.defined())
    for (int i : {1, 2}) parts[i] = parts[i].repeat_interleave(shape.heads / shape.kv_heads, 1);
  return composed::attend(parts[0], parts[1], parts[2], mask, {.causal = true, .scale = shape.scale});
}

}  // namespace

void register_attention(torch::Library& library) { library.impl("attention", attention_operation<attention>); }

}  // namespace zero::cuda
