#include "models/ops/cuda/device_rows.h"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/autograd/custom_function.h>

#include "base/error.h"
#include "base/numbers/number_types.h"
#include "models/ops/cuda/row_launchers.h"

namespace zero::cuda {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Stream stream_for(const at::Tensor& rows) {
  return {c10::cuda::getCurrentCUDAStream(rows.get_device()).stream(), number_of(rows.scalar_type())};
}

at::TensorOptions precise(const at::Tensor& rows) { return rows.options().dtype(at::kFloat); }

const std::int64_t* indices(const at::Tensor& tensor) {
  if (!tensor.defined()) return nullptr;
  ZERO_CHECK(tensor.is_contiguous() && tensor.scalar_type() == at::kLong, "the kernels take contiguous int64 indices");
  return tensor.const_data_ptr<std::int64_t>();
}

}  // namespace

bool takes_type(const at::Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  return tensor.is_cuda() && (type == at::kFloat || type == at::kBFloat16 || type == at::kHalf);
}

bool takes_rows(const at::Tensor& rows) {
  // SwiGLU's rows are two of its vectors long.
  return takes_type(rows) && rows.is_contiguous() && rows.size(-1) % 16 == 0 &&
         reinterpret_cast<std::uintptr_t>(rows.const_data_ptr()) % 16 == 0;
}

bool takes(const at::Tensor& rows) { return takes_rows(rows) && rows.size(-1) <= max_hidden; }

RmsNormed rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  RmsNormed out{at::empty_like(x), at::empty({x.size(0)}, precise(x))};
  rms_norm(RmsNormJob{x.const_data_ptr(), weight.const_data_ptr(), out.y.data_ptr(), out.rstd.data_ptr<float>(),
                      x.size(0), int(x.size(1)), float(eps), false},
           stream_for(x));
  return out;
}

at::Tensor rms_norm_again(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& rstd) {
  const at::Tensor y = at::empty_like(x);
  rms_norm(RmsNormJob{x.const_data_ptr(), weight.const_data_ptr(), y.data_ptr(), rstd.data_ptr<float>(), x.size(0),
                      int(x.size(1)), 0, true},
           stream_for(x));
  return y;
}

RmsNormGradients rms_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                                   const at::Tensor& rstd, bool want_weight) {
  ZERO_CHECK(dy.is_contiguous() && x.size(1) <= max_hidden, "rms_norm_backward: rows are not contiguous or too long");
  RmsNormGradients out{at::empty_like(x), {}};
  // Enough blocks to hide the latency of a row's sums behind other rows.
  const std::int64_t most = 4 * at::cuda::getCurrentDeviceProperties()->multiProcessorCount;
  const int parts = int(std::min<std::int64_t>(want_weight ? most : 65535, x.size(0)));
  const at::Tensor partial = want_weight ? at::empty({parts, x.size(1)}, precise(x)) : at::Tensor();
  rms_norm_backward(
      RmsNormBackwardJob{dy.const_data_ptr(), x.const_data_ptr(), weight.const_data_ptr(), rstd.const_data_ptr<float>(),
                         out.x.data_ptr(), want_weight ? partial.data_ptr<float>() : nullptr, parts, x.size(0),
                         int(x.size(1))},
      stream_for(x));
  if (want_weight) out.weight = partial.sum(0).to(weight.scalar_type());
  return out;
}

at::Tensor swiglu(const at::Tensor& gate_up) {
  const at::Tensor y = at::empty({gate_up.size(0), gate_up.size(1) / 2}, gate_up.options());
  swiglu(SwigluJob{gate_up.const_data_ptr(), nullptr, y.data_ptr(), y.size(0), int(y.size(1))}, stream_for(gate_up));
  return y;
}

at::Tensor swiglu_backward(const at::Tensor& dy, const at::Tensor& gate_up) {
  ZERO_CHECK(dy.is_contiguous(), "swiglu_backward: rows are not contiguous");
  const at::Tensor d = at::empty_like(gate_up);
  swiglu(SwigluJob{gate_up.const_data_ptr(), dy.const_data_ptr(), d.data_ptr(), dy.size(0), int(dy.size(1))},
         stream_for(gate_up));
  return d;
}

CrossEntropy cross_entropy(const at::Tensor& logits, const at::Tensor& targets) {
  const at::Tensor losses = at::empty({logits.size(0)}, precise(logits));
  CrossEntropy out{{}, at::empty_like(losses)};
  cross_entropy(CrossEntropyJob{logits.data_ptr(), indices(targets), out.lse.data_ptr<float>(),
                                losses.data_ptr<float>(), logits.size(0), int(logits.size(1)), nullptr},
                stream_for(logits));
  out.loss = losses.sum();
  return out;
}

void cross_entropy_backward_(at::Tensor& logits, const at::Tensor& targets, const at::Tensor& lse,
                             const at::Tensor& scale) {
  const at::Tensor factor = scale.to(at::kFloat);
  cross_entropy_backward(CrossEntropyJob{logits.data_ptr(), indices(targets), lse.data_ptr<float>(), nullptr,
                                         logits.size(0), int(logits.size(1)), factor.const_data_ptr<float>()},
                         stream_for(logits));
}

at::Tensor dropout_mask(const LowRank& adapter, const at::Tensor& z) {
  const at::Tensor mask = at::empty({z.size(0), z.size(1)}, z.options());
  dropout_mask(DropoutMaskJob{mask.data_ptr(), z.size(0), int(z.size(1)), adapter.sequence, adapter.first_sample,
                              adapter.seed, adapter.dropout_threshold(), adapter.kept_scale()},
               stream_for(z));
  return mask;
}

namespace {

struct Turn {
  at::Tensor cos, sin, positions;
  std::int64_t heads;
};

at::Tensor turn(const at::Tensor& qkv, const Turn& how, bool back) {
  const at::Tensor in = qkv.contiguous(), out = at::empty_like(in);
  const std::int64_t half = how.cos.size(1);
  rotate(RotateJob{in.const_data_ptr(), out.data_ptr(), how.cos.const_data_ptr<float>(),
                   how.sin.const_data_ptr<float>(), indices(how.positions), in.size(0) * in.size(1), int(in.size(1)),
                   int(how.heads), int(2 * half), int(in.size(2)), back},
         stream_for(in));
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

}  // namespace zero::cuda
