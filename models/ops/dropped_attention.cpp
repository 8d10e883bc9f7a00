#include "models/ops/dropped_attention.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include <cmath>
#include <limits>

#include "base/activity_clock.h"
#include "models/ops/dropout.h"
#include "models/ops/matrix_product.h"
#include "models/undivided.h"

namespace zero {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct DropSettings : torch::CustomClassHolder {
  explicit DropSettings(const composed::AttendOptions& o) : options(o) {}
  composed::AttendOptions options;
};

/// The rotated heads of a batch and what their tokens see.
struct HeadsOfBatch {
  at::Tensor q, k, v;  // [B, heads or kv_heads, T, head_dim]
  at::Tensor mask;     // [B or 1, 1, T, T], or undefined
  composed::AttendOptions options;

  std::int64_t rows() const { return q.size(0); }
  std::int64_t length() const { return q.size(2); }
  std::int64_t kv_heads() const { return k.size(1); }
  std::int64_t group() const { return q.size(1) / k.size(1); }
  double scale() const { return options.scale > 0 ? options.scale : 1 / std::sqrt(double(q.size(3))); }

  static at::Tensor wide(const at::Tensor& heads, std::int64_t row, std::int64_t head) {
    return heads.select(0, row).select(0, head).to(at::toOpMathType(heads.scalar_type()));
  }

  /// The numbers that are added to the scores of a row's tokens, [T, T].
  at::Tensor bias(std::int64_t row) const {
    const at::ScalarType type = at::toOpMathType(q.scalar_type());
    const at::Tensor one = mask.defined() ? mask.select(0, mask.size(0) == 1 ? 0 : row).select(0, 0) : at::Tensor();
    if (one.defined() && one.scalar_type() != at::kBool) return one.to(type);
    const at::TensorOptions bits = q.options().dtype(at::kBool);
    const at::Tensor sees = one.defined()    ? one
                            : options.causal ? at::ones({length(), length()}, bits).tril_()
                                             : at::ones({length(), length()}, bits);
    return at::zeros({length(), length()}, q.options().dtype(type))
        .masked_fill_(sees.eq(0), -std::numeric_limits<double>::infinity());
  }
};

/// The probabilities of one head, and the mask that drops some of them. Both are [T, T].
struct Probabilities {
  Probabilities(const HeadsOfBatch& of, const at::Tensor& q, const at::Tensor& k, const at::Tensor& bias,
                std::int64_t row, std::int64_t head) {
    const at::Tensor scores = matrix_product(q, k.t()).mul_(of.scale()).add_(bias);
    kept = dropout_mask(of.options.dropout.of(row, head, of.length()), scores);
    const Undivided sums;
    all = scores.softmax(-1);
  }
  at::Tensor all, kept;
};

/// Calls f(row, kv_head) for all. On the meta device one call measures the memory.
template <class F>
void for_each_group(const HeadsOfBatch& of, const F& f) {
  for (std::int64_t row = 0; row < of.rows(); ++row) {
    const at::Tensor bias = of.bias(row);
    for (std::int64_t kv_head = 0; kv_head < of.kv_heads(); ++kv_head) {
      f(row, kv_head, bias);
      if (of.q.is_meta()) return;
    }
  }
}

class DroppedAttention : public torch::autograd::Function<DroppedAttention> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const std::optional<at::Tensor>& mask, const c10::intrusive_ptr<DropSettings>& settings) {
    context->save_for_backward({q, k, v, mask.value_or(at::Tensor())});
    context->saved_data["settings"] = c10::IValue::make_capsule(settings);
    const HeadsOfBatch of{q, k, v, mask.value_or(at::Tensor()), settings->options};
    const at::Tensor y = at::empty_like(q, at::MemoryFormat::Contiguous);
    for_each_group(of, [&](std::int64_t row, std::int64_t kv_head, const at::Tensor& bias) {
      const at::Tensor keys = of.wide(k, row, kv_head), values = of.wide(v, row, kv_head);
      for (std::int64_t head = kv_head * of.group(); head < (kv_head + 1) * of.group(); ++head) {
        const Probabilities p(of, of.wide(q, row, head), keys, bias, row, head);
        y.select(0, row).select(0, head).copy_(matrix_product(p.all.mul(p.kept), values));
      }
    });
    return y;
  }

  // With d the dropped probabilities: dv = d^T dy, dp = mask (dy v^T), and the scores' gradient is p (dp - sum p dp).
  static variable_list backward(AutogradContext* context, variable_list grads) {
    refuse_second_derivative("zero::attention");
    const ActivityScope scope(Activity::attention);
    const variable_list saved = context->get_saved_variables();
    const auto settings = c10::static_intrusive_pointer_cast<DropSettings>(context->saved_data["settings"].toCapsule());
    const HeadsOfBatch of{saved[0], saved[1], saved[2], saved[3], settings->options};
    const at::Tensor dq = at::empty_like(of.q, at::MemoryFormat::Contiguous),
                     dk = at::empty_like(of.k, at::MemoryFormat::Contiguous),
                     dv = at::empty_like(of.v, at::MemoryFormat::Contiguous);
    for_each_group(of, [&](std::int64_t row, std::int64_t kv_head, const at::Tensor& bias) {
      const at::Tensor keys = of.wide(of.k, row, kv_head), values = of.wide(of.v, row, kv_head);
      at::Tensor key_sums = at::zeros_like(keys), value_sums = at::zeros_like(values);
      for (std::int64_t head = kv_head * of.group(); head < (kv_head + 1) * of.group(); ++head) {
        const at::Tensor q = of.wide(of.q, row, head), dy = of.wide(grads[0], row, head);
        const Probabilities p(of, q, keys, bias, row, head);
        matrix_product_into(value_sums, p.all.mul(p.kept).t(), dy, true);
        const at::Tensor ds = matrix_product(dy, values.t()).mul_(p.kept);
        {
          const Undivided sums;
          ds.sub_(ds.mul(p.all).sum(-1, true)).mul_(p.all).mul_(of.scale());
        }
        dq.select(0, row).select(0, head).copy_(matrix_product(ds, keys));
        matrix_product_into(key_sums, ds.t(), q, true);
      }
      dk.select(0, row).select(0, kv_head).copy_(key_sums);
      dv.select(0, row).select(0, kv_head).copy_(value_sums);
    });
    return {dq, dk, dv, {}, {}};
  }
};

}  // namespace

at::Tensor dropped_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask,
                             const composed::AttendOptions& options) {
  return DroppedAttention::apply(q, k, v, mask.defined() ? std::optional(mask) : std::nullopt,
                                 c10::make_intrusive<DropSettings>(options));
}

}  // namespace zero
