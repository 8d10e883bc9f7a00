#pragma once
// The backends' implementations of the operations. operators.cpp registers them under these names. The public functions
// of this folder define each computation. GPU implementations are in cuda/.
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "models/ops/attention.h"

namespace torch {
class Library;
}

namespace zero {

using TensorPair = std::tuple<at::Tensor, at::Tensor>;

/// Throws Error if a backward pass is differentiated again, because its kernels do not record a graph.
inline void refuse_second_derivative(const char* operation) {
  if (at::GradMode::is_enabled()) throw Error(std::string(operation) + " has no second derivative");
}

/// dropout_mask zeroes an element if its draw is below this threshold. Other elements are multiplied by kept_scale.
inline std::uint32_t dropout_threshold(double dropout) { return static_cast<std::uint32_t>(dropout * 4294967296.0); }
inline float kept_scale(double dropout) { return static_cast<float>(1.0 / (1.0 - dropout)); }

/// The signatures of the operations, which are the same on every device. checks.h checks the arguments.
namespace signature {

using rms_norm = TensorPair(const at::Tensor& x, const at::Tensor& weight, double eps);
using rms_norm_again = at::Tensor(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& rstd);
using rms_norm_backward = TensorPair(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                                     const at::Tensor& rstd, bool want_weight, const std::optional<at::Tensor>& beside);
using swiglu = at::Tensor(const at::Tensor& gate_up);
using swiglu_backward = at::Tensor(const at::Tensor& dy, const at::Tensor& gate_up);
using cross_entropy = TensorPair(const at::Tensor& logits, const at::Tensor& targets);
using cross_entropy_gradient_ = TensorPair(const at::Tensor& logits, const at::Tensor& targets,
                                           const at::Tensor& scale);
using cross_entropy_backward_ = void(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& lse,
                                     const at::Tensor& scale);
using dropout_mask = at::Tensor(const at::Tensor& z, double dropout, std::int64_t seed, std::int64_t first_sample,
                                std::int64_t sequence, std::int64_t first_row, std::int64_t first_column);
using embedding_backward = at::Tensor(const at::Tensor& dy, const at::Tensor& ids, std::int64_t vocabulary);
using trained_rows = at::Tensor(const at::Tensor& x, const at::Tensor& targets, bool some_on_meta);
using logits_chunks = std::vector<std::int64_t>(const at::Tensor& rows, std::int64_t row_bytes, std::int64_t most);
using add_product_ = void(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b);
using matrix_product_into = void(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool add);
using matrix_product = at::Tensor(const at::Tensor& a, const at::Tensor& b, const std::optional<at::Tensor>& residual,
                                  const std::optional<at::Tensor>& bias);
using table_rows = std::int64_t(const at::Tensor& qkv, const std::optional<at::Tensor>& positions);
using attention_operation = at::Tensor(const at::Tensor& qkv, const at::Tensor& cos, const at::Tensor& sin,
                                       const std::optional<at::Tensor>& positions,
                                       const std::optional<at::Tensor>& documents,
                                       const std::optional<at::Tensor>& spans, std::int64_t longest_span,
                                       const std::optional<at::Tensor>& bias, std::int64_t heads, std::int64_t kv_heads,
                                       bool gpu_on_meta, std::int64_t window, double scale, double dropout,
                                       std::int64_t seed, std::int64_t first_sample, std::int64_t first_head);
/// An attention with structured arguments. attention_operation() adapts it to the operation's flat arguments.
using attention = at::Tensor(const at::Tensor& qkv, const AttentionShape& shape, const Rotary::Table& table,
                             const Batch& batch, const HeadDropout& dropout);

}  // namespace signature

/// Implementations composed of LibTorch operations, for every type and device.
namespace composed {

signature::rms_norm rms_norm;
signature::rms_norm_again rms_norm_again;
signature::rms_norm_backward rms_norm_backward;
signature::swiglu swiglu;
signature::swiglu_backward swiglu_backward;
signature::cross_entropy cross_entropy;
signature::cross_entropy_gradient_ cross_entropy_gradient_;
signature::cross_entropy_backward_ cross_entropy_backward_;
signature::dropout_mask dropout_mask;
signature::embedding_backward embedding_backward;
signature::trained_rows trained_rows;
signature::logits_chunks logits_chunks;
signature::add_product_ add_product_;
signature::matrix_product_into matrix_product_into;
signature::matrix_product matrix_product;
signature::table_rows table_rows;
signature::attention attention;

struct AttendOptions {
  bool causal = true;  // used if there is no mask
  double scale = 0;    // as in AttentionShape
  HeadDropout dropout = {};
};
/// Calls LibTorch's attention on rotated q, k and v, each [B, heads, T, head_dim]; with dropout, dropped_attention().
/// Returns [B, T, heads * head_dim].
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask,
                  const AttendOptions& options);

}  // namespace composed

/// Implementations with the kernels in kernels/. Types that the kernels do not support use the composed
/// implementations. These implementations also serve the meta device, where no kernel runs.
namespace cpu {

signature::rms_norm rms_norm;
signature::rms_norm_again rms_norm_again;
signature::rms_norm_backward rms_norm_backward;
signature::swiglu swiglu;
signature::swiglu_backward swiglu_backward;
signature::cross_entropy cross_entropy;
signature::cross_entropy_gradient_ cross_entropy_gradient_;
signature::cross_entropy_backward_ cross_entropy_backward_;
signature::matrix_product_into matrix_product_into;
signature::table_rows table_rows;
signature::attention attention;

}  // namespace cpu

/// Implementations for the meta device, of operations whose result sizes do not follow from shapes alone.
namespace meta {

signature::embedding_backward embedding_backward;
signature::trained_rows trained_rows;
signature::logits_chunks logits_chunks;
signature::attention attention;

}  // namespace meta

/// Registers the operations' autograd functions, for the dispatch key Autograd. If nothing requires a gradient, an
/// operation only calls its backend: it builds no graph and saves nothing.
void register_gradients(torch::Library& library);

/// Adapts an attention to the operation's arguments.
template <signature::attention* function>
at::Tensor attention_operation(const at::Tensor& qkv, const at::Tensor& cos, const at::Tensor& sin,
                               const std::optional<at::Tensor>& positions, const std::optional<at::Tensor>& documents,
                               const std::optional<at::Tensor>& spans, std::int64_t longest_span,
                               const std::optional<at::Tensor>& bias, std::int64_t heads, std::int64_t kv_heads,
                               bool gpu_on_meta, std::int64_t window, double scale, double dropout, std::int64_t seed,
                               std::int64_t first_sample, std::int64_t first_head) {
  Batch batch;
  batch.positions = positions.value_or(at::Tensor());
  batch.documents = documents.value_or(at::Tensor());
  batch.spans = spans.value_or(at::Tensor());
  batch.longest_span = longest_span;
  batch.bias = bias.value_or(at::Tensor());
  if (gpu_on_meta) batch.meta.device = at::kCUDA;
  return function(qkv, {heads, kv_heads, 2 * cos.size(1), window, scale}, {cos, sin}, batch,
                  {dropout, static_cast<std::uint64_t>(seed), first_sample, first_head});
}

}  // namespace zero
