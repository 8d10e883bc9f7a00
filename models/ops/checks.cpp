#include "models/ops/checks.h"

#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/OpMathType.h>

#include <algorithm>
#include <cmath>

#include "base/log.h"

namespace zero::check {
namespace {

using Types = at::ArrayRef<at::ScalarType>;
constexpr at::ScalarType floats[] = {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble};
constexpr std::int64_t any = -1;  // length

bool is(const at::Tensor& t, Types types, at::IntArrayRef shape) {
  if (!t.defined() || t.is_nested() || t.layout() != at::kStrided || t.dim() != std::int64_t(shape.size()))
    return false;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != any && shape[d] != t.size(std::int64_t(d))) return false;
  return std::ranges::find(types, t.scalar_type()) != types.end();
}

// For example "Float [3, 16] on cpu".
std::string described(const at::Tensor& t) {
  if (!t.defined()) return "undefined";
  if (t.is_nested()) return "a nested tensor";
  const std::string layout = t.layout() == at::kStrided ? "" : text(" of layout ", t.layout());
  return text(t.scalar_type(), ' ', t.sizes(), " on ", t.device(), layout);
}

// For example "Float or Double [n, 16] on cpu".
std::string wanted(Types types, at::IntArrayRef shape, const at::Tensor& beside) {
  std::string words;
  for (std::size_t i = 0; i < types.size(); ++i)
    words += text(i == 0 ? "" : i + 1 < types.size() ? ", " : " or ", types[i]);
  words += " [";
  for (std::size_t d = 0; d < shape.size(); ++d)
    words += (d == 0 ? "" : ", ") + (shape[d] == any ? "n" : std::to_string(shape[d]));
  return words + ']' + (beside.defined() ? text(" on ", beside.device()) : "");
}

class Arguments {
 public:
  explicit Arguments(const char* operation) : operation_(operation) {}

  template <class Value>
  void require(bool holds, const char* name, const Value& value, const char* rule) const {
    if (!holds) [[unlikely]]
      refuse(text(name, " is ", value, ", and must be ", rule));
  }
  /// Requires a dense tensor of one of these types and of this shape, on the same device as `beside`.
  void tensor(const char* name, const at::Tensor& t, Types types, at::IntArrayRef shape,
              const at::Tensor& beside) const {
    if (!is(t, types, shape) || t.device() != beside.device()) [[unlikely]]
      refuse(text(name, " is ", described(t), ", and must be ", wanted(types, shape, beside)));
  }
  /// The first tensor, which determines the device of the others.
  void tensor(const char* name, const at::Tensor& t, Types types, at::IntArrayRef shape) const {
    if (!is(t, types, shape)) [[unlikely]]
      refuse(text(name, " is ", described(t), ", and must be ", wanted(types, shape, {})));
  }
  void contiguous(const char* name, const at::Tensor& t) const {
    if (!t.is_contiguous()) [[unlikely]]
      refuse(text(name, " has the strides ", t.strides(), ", and must be contiguous: give ", name, ".contiguous()"));
  }
  /// Requires separate memory for each element.
  void writable(const char* name, const at::Tensor& t) const {
    if (at::has_internal_overlap(t) == at::MemOverlap::Yes) [[unlikely]]
      refuse(text(name, " has the strides ", t.strides(), ", so that elements share memory, and is written to: give ",
                  name, ".contiguous()"));
  }
  /// Requires int64 numbers in [0, end), if the host can read them.
  void below(const char* name, const at::Tensor& ids, std::int64_t end, const char* what) const {
    if (!ids.is_cpu() || ids.numel() == 0) return;
    const at::Tensor row = ids.contiguous();
    const auto* const first = row.const_data_ptr<std::int64_t>();
    std::int64_t lowest = *first, highest = *first;
    for (const std::int64_t* id = first; id != first + row.numel(); ++id) {
      lowest = std::min(lowest, *id);
      highest = std::max(highest, *id);
    }
    if (lowest < 0 || highest >= end) [[unlikely]]
      refuse(text(name, " are from ", lowest, " to ", highest, ", and must be from 0 to below ", end, ", ", what));
  }

  [[noreturn]] void refuse(const std::string& what) const { throw Error(text("zero::", operation_, ": ", what)); }

 private:
  const char* operation_;
};

at::ScalarType precise(const at::Tensor& x) { return at::toOpMathType(x.scalar_type()); }

void norm(const Arguments& call, const at::Tensor& x, const at::Tensor& weight) {
  call.tensor("x", x, floats, {any, any});
  call.tensor("weight", weight, floats, {x.size(1)}, x);
}

/// Requires one number per row in fp32 (fp64 for fp64), as a kernel writes it.
void number_a_row(const Arguments& call, const char* name, const at::Tensor& numbers, const at::Tensor& rows) {
  call.tensor(name, numbers, precise(rows), {rows.size(0)}, rows);
  call.contiguous(name, numbers);
}

void gate_and_up(const Arguments& call, const at::Tensor& gate_up) {
  call.tensor("gate_up", gate_up, floats, {any, any});
  call.require(gate_up.size(1) % 2 == 0, "the length of gate_up's rows", gate_up.size(1), "even: half gate, half up");
}

/// One number for all rows, or one per row.
void scale_of_rows(const Arguments& call, const at::Tensor& scale, const at::Tensor& rows) {
  if (!scale.defined() || scale.dim() != 1) return call.tensor("scale", scale, floats, {}, rows);
  call.tensor("scale", scale, floats, {rows.size(0)}, rows);
  call.contiguous("scale", scale);
}

void logits_and_targets(const Arguments& call, const at::Tensor& logits, const at::Tensor& targets) {
  call.tensor("logits", logits, floats, {any, any});
  call.tensor("targets", targets, at::kLong, {logits.size(0)}, logits);
  call.contiguous("targets", targets);
  call.below("targets", targets, logits.size(1), "the size of the vocabulary");
}

void draws(const Arguments& call, double dropout, std::int64_t first_sample) {
  call.require(dropout >= 0 && dropout < 1, "dropout", dropout, "at least 0, and below 1");
  call.require(first_sample >= 0 && first_sample < std::int64_t{1} << 62, "first_sample", first_sample,
               "at least 0, and below 2^62");
}

void factors(const Arguments& call, const at::Tensor& a, const at::Tensor& b, std::int64_t terms) {
  call.tensor("a", a, floats, {any, any});
  call.tensor("b", b, a.scalar_type(), {terms, any}, a);
}

/// The destination of a product: of its type or a wider one.
void result(const Arguments& call, const char* name, const at::Tensor& out, const at::Tensor& a,
            at::IntArrayRef shape) {
  call.tensor(name, out, {a.scalar_type(), precise(a)}, shape, a);
  call.writable(name, out);
}

}  // namespace

void rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const Arguments call("rms_norm");
  norm(call, x, weight);
  call.require(eps >= 0 && std::isfinite(eps), "eps", eps, "at least 0, and finite");
}

void rms_norm_again(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& rstd) {
  const Arguments call("rms_norm_again");
  norm(call, x, weight);
  number_a_row(call, "rstd", rstd, x);
}

void rms_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& rstd,
                       bool, const std::optional<at::Tensor>& beside) {
  const Arguments call("rms_norm_backward");
  norm(call, x, weight);
  number_a_row(call, "rstd", rstd, x);
  call.tensor("dy", dy, floats, x.sizes(), x);
  if (beside) call.tensor("beside", *beside, floats, x.sizes(), x);
}

void swiglu(const at::Tensor& gate_up) { gate_and_up(Arguments("swiglu"), gate_up); }

void swiglu_backward(const at::Tensor& dy, const at::Tensor& gate_up) {
  const Arguments call("swiglu_backward");
  gate_and_up(call, gate_up);
  call.tensor("dy", dy, floats, {gate_up.size(0), gate_up.size(1) / 2}, gate_up);
}

void cross_entropy(const at::Tensor& logits, const at::Tensor& targets) {
  logits_and_targets(Arguments("cross_entropy"), logits, targets);
}

void cross_entropy_gradient_(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& scale) {
  const Arguments call("cross_entropy_gradient_");
  logits_and_targets(call, logits, targets);
  call.writable("logits", logits);
  scale_of_rows(call, scale, logits);
}

void cross_entropy_backward_(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& lse,
                             const at::Tensor& scale) {
  const Arguments call("cross_entropy_backward_");
  logits_and_targets(call, logits, targets);
  call.writable("logits", logits);
  number_a_row(call, "lse", lse, logits);
  scale_of_rows(call, scale, logits);
}

void dropout_mask(const at::Tensor& z, double dropout, std::int64_t, std::int64_t first_sample, std::int64_t sequence,
                  std::int64_t first_row, std::int64_t first_column) {
  const Arguments call("dropout_mask");
  call.tensor("z", z, floats, {any, any});
  draws(call, dropout, first_sample);
  call.require(sequence >= 1, "sequence", sequence, "at least 1: the tokens of a sequence");
  const auto place = [&](const char* name, std::int64_t number) {
    call.require(number >= 0 && number < std::int64_t{1} << 62, name, number, "at least 0, and below 2^62");
  };
  place("first_row", first_row);
  place("first_column", first_column);
}

void embedding_backward(const at::Tensor& dy, const at::Tensor& ids, std::int64_t vocabulary) {
  const Arguments call("embedding_backward");
  call.tensor("dy", dy, floats, {any, any});
  call.tensor("ids", ids, at::kLong, {dy.size(0)}, dy);
  call.require(vocabulary >= 1 && vocabulary < std::int64_t{1} << 31, "vocabulary", vocabulary,
               "at least 1, and below 2^31");
  call.below("ids", ids, vocabulary, "the size of the vocabulary");
}

void trained_rows(const at::Tensor& x, const at::Tensor& targets, bool) {
  const Arguments call("trained_rows");
  call.tensor("x", x, floats, {any, any});
  call.tensor("targets", targets, at::kLong, {x.size(0)}, x);
}

void logits_chunks(const at::Tensor& rows, std::int64_t row_bytes, std::int64_t most) {
  const Arguments call("logits_chunks");
  call.tensor("rows", rows, floats, {any, any});
  call.require(row_bytes >= 1, "row_bytes", row_bytes, "at least 1");
  call.require(most >= 0 && most < std::int64_t{1} << 62, "most", most, "at least 0, and below 2^62");
}

void add_product_(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
  const Arguments call("add_product_");
  factors(call, a, b, a.defined() && a.dim() == 2 ? a.size(0) : any);
  result(call, "sum", sum, a, {a.size(1), b.size(1)});
}

void matrix_product_into(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool) {
  const Arguments call("matrix_product_into");
  factors(call, a, b, a.defined() && a.dim() == 2 ? a.size(1) : any);
  result(call, "out", out, a, {a.size(0), b.size(1)});
}

void matrix_product(const at::Tensor& a, const at::Tensor& b, const std::optional<at::Tensor>& residual,
                    const std::optional<at::Tensor>& bias) {
  const Arguments call("matrix_product");
  factors(call, a, b, a.defined() && a.dim() == 2 ? a.size(1) : any);
  if (residual) call.tensor("residual", *residual, a.scalar_type(), {a.size(0), b.size(1)}, a);
  if (bias) call.tensor("bias", *bias, a.scalar_type(), {b.size(1)}, a);
}

void table_rows(const at::Tensor& qkv, const std::optional<at::Tensor>& positions) {
  const Arguments call("table_rows");
  call.tensor("qkv", qkv, floats, {any, any, any});
  if (!positions) return;
  call.tensor("positions", *positions, at::kLong, {qkv.size(0), qkv.size(1)}, qkv);
  call.below("positions", *positions, std::int64_t{1} << 32, "the longest document");
}

void attention(const at::Tensor& qkv, const at::Tensor& cos, const at::Tensor& sin,
               const std::optional<at::Tensor>& positions, const std::optional<at::Tensor>& documents,
               const std::optional<at::Tensor>& spans, std::int64_t longest_span, const std::optional<at::Tensor>& bias,
               std::int64_t heads, std::int64_t kv_heads, bool, std::int64_t window, double scale, double dropout,
               std::int64_t, std::int64_t first_sample, std::int64_t first_head) {
  constexpr at::ScalarType masks[] = {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble, at::kBool};
  const Arguments call("attention");
  call.tensor("qkv", qkv, floats, {any, any, any});
  const std::int64_t B = qkv.size(0), T = qkv.size(1), width = qkv.size(2);
  call.require(heads >= 1 && heads <= width, "heads", heads, "at least 1, and no more than qkv is wide");
  call.require(kv_heads >= 1 && heads % kv_heads == 0, "kv_heads", kv_heads, "a divisor of heads");
  const std::int64_t all = heads + 2 * kv_heads;
  call.require(width % all == 0 && width / all % 2 == 0, "the width of qkv", width,
               "an even number for each of heads + 2 kv_heads");
  call.tensor("cos", cos, precise(qkv), {any, width / all / 2}, qkv);
  call.tensor("sin", sin, precise(qkv), cos.sizes(), qkv);
  call.contiguous("cos", cos);
  call.contiguous("sin", sin);
  if (positions) {
    call.tensor("positions", *positions, at::kLong, {B, T}, qkv);
    call.below("positions", *positions, cos.size(0), "the rows of cos and sin");
  } else {
    call.require(cos.size(0) >= T, "the number of rows of cos and sin", cos.size(0), "one for each token of a row");
  }
  if (documents) call.tensor("documents", *documents, at::kInt, {B, T}, qkv);
  if (spans) call.tensor("spans", *spans, at::kInt, {any}, qkv);
  if (bias) call.tensor("bias", *bias, masks, {B, 1, T, T}, qkv);
  if (bias && !documents) call.refuse("documents are missing, and must be given with a bias, which follows from them");
  call.require(longest_span >= 0, "longest_span", longest_span, "at least 0");
  call.require(window >= 0, "window", window, "at least 0");
  call.require(scale >= 0 && std::isfinite(scale), "scale", scale, "at least 0, and finite");
  draws(call, dropout, first_sample);
  call.require(first_head >= 0 && first_head < std::int64_t{1} << 29, "first_head", first_head,
               "at least 0, and below 2^29");
}

}  // namespace zero::check
