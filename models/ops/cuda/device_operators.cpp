#include "models/ops/cuda/device_operators.h"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "base/numbers/number_types.h"
#include "models/ops/checks.h"
#include "models/ops/cuda/lt_product.h"
#include "models/ops/cuda/row_launchers.h"
#include "models/ops/head_rows.h"

namespace zero::cuda {

bool takes_type(const at::Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  return tensor.is_cuda() && (type == at::kFloat || type == at::kBFloat16 || type == at::kHalf);
}

namespace {

Stream stream_for(const at::Tensor& rows) {
  return {c10::cuda::getCurrentCUDAStream(rows.get_device()).stream(), number_of(rows.scalar_type())};
}

/// True if kernels can read it in vectors.
bool in_vectors(const at::Tensor& tensor) {
  return tensor.is_contiguous() && reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr()) % 16 == 0;
}

/// Rows for SwiGLU: contiguous, made of whole 16-byte chunks; they hold two of its vectors.
bool takes_rows(const at::Tensor& rows) { return takes_type(rows) && in_vectors(rows) && rows.size(-1) % 16 == 0; }

/// True if a kernel that supports these rows can also read the gradient.
bool takes_beside(const at::Tensor& rows, const at::Tensor& dy) {
  return in_vectors(dy) && dy.scalar_type() == rows.scalar_type();
}

at::TensorOptions precise(const at::Tensor& rows) { return rows.options().dtype(at::kFloat); }

}  // namespace

bool takes(const at::Tensor& rows, const at::Tensor& weight) {
  return takes_rows(rows) && rows.size(-1) <= max_hidden && takes_beside(rows, weight);
}

namespace {
namespace device {  // next to the launchers' names

TensorPair rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const c10::OptionalDeviceGuard guard(x.device());
  if (!takes(x, weight)) return composed::rms_norm(x, weight, eps);
  const at::Tensor y = at::empty_like(x), rstd = at::empty({x.size(0)}, precise(x));
  rms_norm(RmsNormJob{x.const_data_ptr(), weight.const_data_ptr(), y.data_ptr(), rstd.data_ptr<float>(), x.size(0),
                      int(x.size(1)), float(eps), false},
           stream_for(x));
  return {y, rstd};
}

at::Tensor rms_norm_again(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& rstd) {
  const c10::OptionalDeviceGuard guard(x.device());
  if (!takes(x, weight)) return composed::rms_norm_again(x, weight, rstd);
  const at::Tensor y = at::empty_like(x);
  rms_norm(RmsNormJob{x.const_data_ptr(), weight.const_data_ptr(), y.data_ptr(), rstd.data_ptr<float>(), x.size(0),
                      int(x.size(1)), 0, true},
           stream_for(x));
  return y;
}

TensorPair rms_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                             const at::Tensor& rstd, bool want_weight, const std::optional<at::Tensor>& beside) {
  const c10::OptionalDeviceGuard guard(x.device());
  if (!takes(x, weight) || !takes_beside(x, dy) || (beside && !takes_beside(x, *beside)))
    return composed::rms_norm_backward(dy, x, weight, rstd, want_weight, beside);
  const at::Tensor dx = at::empty_like(x);
  // Enough blocks to hide the latency of one row's sums.
  const std::int64_t most = 4 * at::cuda::getCurrentDeviceProperties()->multiProcessorCount;
  const int parts = int(std::min<std::int64_t>(want_weight ? most : 65535, x.size(0)));
  const at::Tensor partial = want_weight ? at::empty({parts, x.size(1)}, precise(x)) : at::Tensor();
  rms_norm_backward(
      RmsNormBackwardJob{dy.const_data_ptr(), x.const_data_ptr(), weight.const_data_ptr(), rstd.const_data_ptr<float>(),
                         beside ? beside->const_data_ptr() : nullptr, dx.data_ptr(),
                         want_weight ? partial.data_ptr<float>() : nullptr, parts, x.size(0), int(x.size(1))},
      stream_for(x));
  return {dx, want_weight ? partial.sum(0).to(weight.scalar_type()) : at::Tensor()};
}

at::Tensor swiglu(const at::Tensor& gate_up) {
  const c10::OptionalDeviceGuard guard(gate_up.device());
  if (!takes_rows(gate_up)) return composed::swiglu(gate_up);
  const at::Tensor y = at::empty({gate_up.size(0), gate_up.size(1) / 2}, gate_up.options());
  swiglu(SwigluJob{gate_up.const_data_ptr(), nullptr, y.data_ptr(), y.size(0), int(y.size(1))}, stream_for(gate_up));
  return y;
}

at::Tensor swiglu_backward(const at::Tensor& dy, const at::Tensor& gate_up) {
  const c10::OptionalDeviceGuard guard(gate_up.device());
  if (!takes_rows(gate_up) || !takes_beside(gate_up, dy)) return composed::swiglu_backward(dy, gate_up);
  const at::Tensor d = at::empty_like(gate_up);
  swiglu(SwigluJob{gate_up.const_data_ptr(), dy.const_data_ptr(), d.data_ptr(), dy.size(0), int(dy.size(1))},
         stream_for(gate_up));
  return d;
}

std::int64_t scale_step(const at::Tensor& scale) { return scale.defined() && scale.dim() == 1 ? 1 : 0; }

/// For contiguous rows. If there is a scale, overwrites them with their gradients.
TensorPair losses_of(const at::Tensor& rows, const at::Tensor& targets, const at::Tensor& scale) {
  const at::Tensor losses = at::empty({rows.size(0)}, precise(rows)), lse = at::empty_like(losses);
  cross_entropy(CrossEntropyJob{rows.data_ptr(), targets.const_data_ptr<std::int64_t>(), lse.data_ptr<float>(),
                                losses.data_ptr<float>(), rows.size(0), int(rows.size(1)),
                                scale.defined() ? scale.const_data_ptr<float>() : nullptr, scale_step(scale)},
                stream_for(rows));
  return {losses.sum(), lse};
}

TensorPair cross_entropy(const at::Tensor& logits, const at::Tensor& targets) {
  const c10::OptionalDeviceGuard guard(logits.device());
  if (!takes_type(logits)) return composed::cross_entropy(logits, targets);
  return losses_of(logits.contiguous(), targets, {});
}

TensorPair cross_entropy_gradient_(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& scale) {
  const c10::OptionalDeviceGuard guard(logits.device());
  if (!takes_type(logits)) return composed::cross_entropy_gradient_(logits, targets, scale);
  const at::Tensor rows = logits.contiguous();
  const TensorPair found = losses_of(rows, targets, scale.to(at::kFloat));
  if (!rows.is_same(logits)) logits.copy_(rows);
  return found;
}

void cross_entropy_backward_(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& lse,
                             const at::Tensor& scale) {
  const c10::OptionalDeviceGuard guard(logits.device());
  if (!takes_type(logits)) return composed::cross_entropy_backward_(logits, targets, lse, scale);
  const at::Tensor rows = logits.contiguous(), factor = scale.to(at::kFloat);
  cross_entropy_backward(
      CrossEntropyJob{rows.data_ptr(), targets.const_data_ptr<std::int64_t>(), lse.data_ptr<float>(), nullptr,
                      rows.size(0), int(rows.size(1)), factor.const_data_ptr<float>(), scale_step(factor)},
      stream_for(rows));
  if (!rows.is_same(logits)) logits.copy_(rows);
}

at::Tensor dropout_mask(const at::Tensor& z, double dropout, std::int64_t seed, std::int64_t first_sample,
                        std::int64_t sequence, std::int64_t first_row, std::int64_t first_column) {
  const c10::OptionalDeviceGuard guard(z.device());
  if (!takes_type(z)) return composed::dropout_mask(z, dropout, seed, first_sample, sequence, first_row, first_column);
  const at::Tensor mask = at::empty({z.size(0), z.size(1)}, z.options());
  dropout_mask(
      DropoutMaskJob{mask.data_ptr(), z.size(0), int(z.size(1)), sequence, first_sample, first_row, first_column,
                     static_cast<std::uint64_t>(seed), dropout_threshold(dropout), kept_scale(dropout)},
      stream_for(z));
  return mask;
}

at::Tensor embedding_backward(const at::Tensor& dy, const at::Tensor& ids, std::int64_t vocabulary) {
  return at::embedding_dense_backward(dy, ids, vocabulary, -1, false);
}

// The rows that the cross-entropy needs: it skips untrained ones.
at::Tensor trained_rows(const at::Tensor& x, const at::Tensor& targets, bool some_on_meta) {
  return takes_type(x) ? at::Tensor() : composed::trained_rows(x, targets, some_on_meta);
}

std::vector<std::int64_t> logits_chunks(const at::Tensor& rows, std::int64_t row_bytes, std::int64_t most) {
  return composed::logits_chunks(rows, row_bytes, most ? most : default_device_logits_bytes);
}

void matrix_product_into(LtProduct& products, const at::Tensor& out, const at::Tensor& a, const at::Tensor& b,
                         bool add) {
  const c10::OptionalDeviceGuard guard(out.device());
  if (!products.multiply({out, a, b, add ? out : at::Tensor(), {}})) composed::matrix_product_into(out, a, b, add);
}

at::Tensor matrix_product(LtProduct& products, const at::Tensor& a, const at::Tensor& b,
                          const std::optional<at::Tensor>& residual, const std::optional<at::Tensor>& bias) {
  const c10::OptionalDeviceGuard guard(a.device());
  const at::Tensor out = at::empty({a.size(0), b.size(1)}, a.options()), added = residual.value_or(at::Tensor()),
                   beside = bias.value_or(at::Tensor());
  return products.multiply({out, a, b, added, beside}) ? out : composed::matrix_product(a, b, residual, bias);
}

}  // namespace device
}  // namespace

void register_kernels(torch::Library& library) {
  library.impl("rms_norm", checked<check::rms_norm, device::rms_norm>);
  library.impl("rms_norm_again", checked<check::rms_norm_again, device::rms_norm_again>);
  library.impl("rms_norm_backward", checked<check::rms_norm_backward, device::rms_norm_backward>);
  library.impl("swiglu", checked<check::swiglu, device::swiglu>);
  library.impl("swiglu_backward", checked<check::swiglu_backward, device::swiglu_backward>);
  library.impl("cross_entropy", checked<check::cross_entropy, device::cross_entropy>);
  library.impl("cross_entropy_gradient_", checked<check::cross_entropy_gradient_, device::cross_entropy_gradient_>);
  library.impl("cross_entropy_backward_", checked<check::cross_entropy_backward_, device::cross_entropy_backward_>);
  library.impl("dropout_mask", checked<check::dropout_mask, device::dropout_mask>);
  library.impl("embedding_backward", checked<check::embedding_backward, device::embedding_backward>);
  library.impl("trained_rows", checked<check::trained_rows, device::trained_rows>);
  library.impl("logits_chunks", checked<check::logits_chunks, device::logits_chunks>);
  // Never destroyed: CUDA may be gone when static objects are destroyed.
  auto* products = new LtProduct;
  library.impl("matrix_product_into",
               [products](const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool add) {
                 check::matrix_product_into(out, a, b, add);
                 device::matrix_product_into(*products, out, a, b, add);
               });
  library.impl("matrix_product",
               [products](const at::Tensor& a, const at::Tensor& b, const std::optional<at::Tensor>& residual,
                          const std::optional<at::Tensor>& bias) {
                 check::matrix_product(a, b, residual, bias);
                 return device::matrix_product(*products, a, b, residual, bias);
               });
  library.impl("add_product_", [products](const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
    check::add_product_(sum, a, b);
    device::matrix_product_into(*products, sum, a.t(), b, true);
  });
}

}  // namespace zero::cuda
