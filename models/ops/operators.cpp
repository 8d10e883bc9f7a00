// The operations by name with their implementations per device: library `zero` of LibTorch's dispatcher. The public
// functions are in this file too, so that linking one of them links all.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "base/activity_clock.h"
#include "base/error.h"
#include "models/ops/checks.h"
#include "models/ops/cross_entropy.h"
#include "models/ops/cuda/device_operators.h"
#include "models/ops/dropout.h"
#include "models/ops/embedding_backward.h"
#include "models/ops/head_rows.h"
#include "models/ops/matrix_product.h"
#include "models/ops/rms_norm.h"
#include "models/ops/swiglu.h"

TORCH_LIBRARY(zero, m) {
  m.def("rms_norm(Tensor x, Tensor weight, float eps) -> (Tensor y, Tensor rstd)");
  m.def("rms_norm_again(Tensor x, Tensor weight, Tensor rstd) -> Tensor");
  m.def(
      "rms_norm_backward(Tensor dy, Tensor x, Tensor weight, Tensor rstd, bool want_weight, Tensor? beside=None) -> (Tensor, Tensor)");
  m.def("swiglu(Tensor gate_up) -> Tensor");
  m.def("swiglu_backward(Tensor dy, Tensor gate_up) -> Tensor");
  m.def("cross_entropy(Tensor logits, Tensor targets) -> (Tensor loss, Tensor lse)");
  m.def("cross_entropy_gradient_(Tensor(a!) logits, Tensor targets, Tensor scale) -> (Tensor loss, Tensor lse)");
  m.def("cross_entropy_backward_(Tensor(a!) logits, Tensor targets, Tensor lse, Tensor scale) -> ()");
  m.def(
      "dropout_mask(Tensor z, float dropout, int seed, int first_sample, int sequence, int first_row, int first_column) -> Tensor");
  m.def("embedding_backward(Tensor dy, Tensor ids, int vocabulary) -> Tensor");
  m.def("trained_rows(Tensor x, Tensor targets, bool some_on_meta) -> Tensor");
  m.def("logits_chunks(Tensor rows, int row_bytes, int most) -> int[]");
  m.def("add_product_(Tensor(a!) sum, Tensor a, Tensor b) -> ()");
  m.def("matrix_product_into(Tensor(a!) out, Tensor a, Tensor b, bool add) -> ()");
  m.def("matrix_product(Tensor a, Tensor b, Tensor? residual, Tensor? bias) -> Tensor");
  m.def("table_rows(Tensor qkv, Tensor? positions) -> int");
  m.def(
      "attention(Tensor(a!) qkv, Tensor cos, Tensor sin, Tensor? positions, Tensor? documents, Tensor? spans, "
      "int longest_span, Tensor? bias, int heads, int kv_heads, bool gpu_on_meta=False, int window=0, float scale=0., "
      "float dropout=0., int seed=0, int first_sample=0, int first_head=0) -> Tensor");
}

namespace zero {
namespace {

void register_kernels(torch::Library& m) {
  m.impl("rms_norm", checked<check::rms_norm, cpu::rms_norm>);
  m.impl("rms_norm_again", checked<check::rms_norm_again, cpu::rms_norm_again>);
  m.impl("rms_norm_backward", checked<check::rms_norm_backward, cpu::rms_norm_backward>);
  m.impl("swiglu", checked<check::swiglu, cpu::swiglu>);
  m.impl("swiglu_backward", checked<check::swiglu_backward, cpu::swiglu_backward>);
  m.impl("cross_entropy", checked<check::cross_entropy, cpu::cross_entropy>);
  m.impl("cross_entropy_gradient_", checked<check::cross_entropy_gradient_, cpu::cross_entropy_gradient_>);
  m.impl("cross_entropy_backward_", checked<check::cross_entropy_backward_, cpu::cross_entropy_backward_>);
  m.impl("matrix_product_into", checked<check::matrix_product_into, cpu::matrix_product_into>);
}

template <signature::attention* function>
constexpr auto checked_attention = checked<check::attention, attention_operation<function>>;

/// The operation of a name, with the signature of all its kernels.
template <class Signature>
c10::TypedOperatorHandle<Signature> operation(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

std::optional<at::Tensor> if_defined(const at::Tensor& t) { return t.defined() ? std::optional(t) : std::nullopt; }

}  // namespace
}  // namespace zero

// For devices without their own kernels.
TORCH_LIBRARY_IMPL(zero, CompositeExplicitAutograd, m) {
  using namespace zero;
  m.impl("rms_norm", checked<check::rms_norm, composed::rms_norm>);
  m.impl("rms_norm_again", checked<check::rms_norm_again, composed::rms_norm_again>);
  m.impl("rms_norm_backward", checked<check::rms_norm_backward, composed::rms_norm_backward>);
  m.impl("swiglu", checked<check::swiglu, composed::swiglu>);
  m.impl("swiglu_backward", checked<check::swiglu_backward, composed::swiglu_backward>);
  m.impl("cross_entropy", checked<check::cross_entropy, composed::cross_entropy>);
  m.impl("cross_entropy_gradient_", checked<check::cross_entropy_gradient_, composed::cross_entropy_gradient_>);
  m.impl("cross_entropy_backward_", checked<check::cross_entropy_backward_, composed::cross_entropy_backward_>);
  m.impl("dropout_mask", checked<check::dropout_mask, composed::dropout_mask>);
  m.impl("embedding_backward", checked<check::embedding_backward, composed::embedding_backward>);
  m.impl("trained_rows", checked<check::trained_rows, composed::trained_rows>);
  m.impl("logits_chunks", checked<check::logits_chunks, composed::logits_chunks>);
  m.impl("add_product_", checked<check::add_product_, composed::add_product_>);
  m.impl("matrix_product_into", checked<check::matrix_product_into, composed::matrix_product_into>);
  m.impl("matrix_product", checked<check::matrix_product, composed::matrix_product>);
  m.impl("table_rows", checked<check::table_rows, composed::table_rows>);
}

TORCH_LIBRARY_IMPL(zero, CPU, m) {
  using namespace zero;
  register_kernels(m);
  m.impl("table_rows", checked<check::table_rows, cpu::table_rows>);
}

TORCH_LIBRARY_IMPL(zero, Meta, m) {
  using namespace zero;
  register_kernels(m);
  m.impl("embedding_backward", checked<check::embedding_backward, meta::embedding_backward>);
  m.impl("trained_rows", checked<check::trained_rows, meta::trained_rows>);
  m.impl("logits_chunks", checked<check::logits_chunks, meta::logits_chunks>);
}

TORCH_LIBRARY_IMPL(zero, CUDA, m) { zero::cuda::register_kernels(m); }

TORCH_LIBRARY_IMPL(zero, Autograd, m) { zero::register_gradients(m); }

// Attention records its own graph: one function with and without autograd.
TORCH_LIBRARY_IMPL(zero, CompositeImplicitAutograd, m) {
  m.impl("attention", zero::checked_attention<zero::composed::attention>);
}
TORCH_LIBRARY_IMPL(zero, CPU, m) { m.impl("attention", zero::checked_attention<zero::cpu::attention>); }
TORCH_LIBRARY_IMPL(zero, AutogradCPU, m) { m.impl("attention", zero::checked_attention<zero::cpu::attention>); }
TORCH_LIBRARY_IMPL(zero, Meta, m) { m.impl("attention", zero::checked_attention<zero::meta::attention>); }
TORCH_LIBRARY_IMPL(zero, AutogradMeta, m) { m.impl("attention", zero::checked_attention<zero::meta::attention>); }
TORCH_LIBRARY_IMPL(zero, CUDA, m) { zero::cuda::register_attention(m); }
TORCH_LIBRARY_IMPL(zero, AutogradCUDA, m) { zero::cuda::register_attention(m); }

namespace zero {

RmsNormed rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  static const auto op = operation<signature::rms_norm>("zero::rms_norm");
  const auto [y, rstd] = op.call(x, weight, eps);
  return {y, rstd};
}

at::Tensor rms_norm_again(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& rstd) {
  static const auto op = operation<signature::rms_norm_again>("zero::rms_norm_again");
  return op.call(x, weight, rstd);
}

RmsNormGradients rms_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                                   const at::Tensor& rstd, bool want_weight, const at::Tensor& beside) {
  static const auto op = operation<signature::rms_norm_backward>("zero::rms_norm_backward");
  const auto [dx, dweight] = op.call(dy, x, weight, rstd, want_weight, if_defined(beside));
  return {dx, dweight};
}

at::Tensor swiglu(const at::Tensor& gate_up) {
  static const auto op = operation<signature::swiglu>("zero::swiglu");
  return op.call(gate_up);
}

at::Tensor swiglu_backward(const at::Tensor& dy, const at::Tensor& gate_up) {
  static const auto op = operation<signature::swiglu_backward>("zero::swiglu_backward");
  return op.call(dy, gate_up);
}

CrossEntropy cross_entropy(const at::Tensor& logits, const at::Tensor& targets) {
  static const auto op = operation<signature::cross_entropy>("zero::cross_entropy");
  const auto [loss, lse] = op.call(logits, targets);
  return {loss, lse};
}

CrossEntropy cross_entropy_gradient_(at::Tensor& logits, const at::Tensor& targets, const at::Tensor& scale) {
  static const auto op = operation<signature::cross_entropy_gradient_>("zero::cross_entropy_gradient_");
  const auto [loss, lse] = op.call(logits, targets, scale);
  return {loss, lse};
}

void cross_entropy_backward_(at::Tensor& logits, const at::Tensor& targets, const at::Tensor& lse,
                             const at::Tensor& scale) {
  static const auto op = operation<signature::cross_entropy_backward_>("zero::cross_entropy_backward_");
  op.call(logits, targets, lse, scale);
}

at::Tensor dropout_mask(const Dropout& dropout, const at::Tensor& z) {
  static const auto op = operation<signature::dropout_mask>("zero::dropout_mask");
  return op.call(z, dropout.share, static_cast<std::int64_t>(dropout.seed), dropout.first_sample, dropout.sequence,
                 dropout.first_row, dropout.first_column);
}

at::Tensor embedding_backward(const at::Tensor& dy, const at::Tensor& ids, std::int64_t vocabulary) {
  static const auto op = operation<signature::embedding_backward>("zero::embedding_backward");
  return op.call(dy, ids, vocabulary);
}

at::Tensor trained_rows(const at::Tensor& x, const at::Tensor& targets, bool some_on_meta) {
  static const auto op = operation<signature::trained_rows>("zero::trained_rows");
  return op.call(x, targets, some_on_meta);
}

std::vector<std::int64_t> logits_chunks(const at::Tensor& rows, std::int64_t row_bytes, std::int64_t most) {
  static const auto op = operation<signature::logits_chunks>("zero::logits_chunks");
  return op.call(rows, row_bytes, most);
}

void add_product_(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
  const ActivityScope products(Activity::products);
  static const auto op = operation<signature::add_product_>("zero::add_product_");
  op.call(sum, a, b);
}

void matrix_product_into(at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool add) {
  const ActivityScope products(Activity::products);
  static const auto op = operation<signature::matrix_product_into>("zero::matrix_product_into");
  op.call(out, a, b, add);
}

at::Tensor matrix_product(const at::Tensor& a, const at::Tensor& b, const at::Tensor& residual,
                          const at::Tensor& bias) {
  if (!residual.defined() && !bias.defined()) return matrix_product(a, b);
  const ActivityScope products(Activity::products);
  static const auto op = operation<signature::matrix_product>("zero::matrix_product");
  return op.call(a, b, if_defined(residual), if_defined(bias));
}

at::Tensor attention(const at::Tensor& qkv, const AttentionShape& shape, Rotary& rotary, const Batch& batch,
                     const HeadDropout& dropout) {
  ZERO_CHECK(qkv.size(-1) == shape.qkv_width(), "qkv does not have the width of its heads");
  const ActivityScope scope(Activity::attention);
  static const auto rows = operation<signature::table_rows>("zero::table_rows");
  static const auto op = operation<signature::attention_operation>("zero::attention");
  const std::int64_t length = rows.call(qkv, if_defined(batch.positions));
  const Rotary::Table table = rotary.table(length, qkv.scalar_type(), qkv.device());
  const at::Tensor turned = rotary.rows(qkv, batch.positions, batch.documents, length);
  return op.call(qkv, table.cos, table.sin, if_defined(turned), if_defined(batch.documents), if_defined(batch.spans),
                 batch.longest_span, if_defined(batch.bias), shape.heads, shape.kv_heads,
                 batch.meta.device == at::kCUDA, shape.window, shape.scale, dropout.share,
                 static_cast<std::int64_t>(dropout.seed), dropout.first_sample, dropout.first_head);
}

}  // namespace zero
