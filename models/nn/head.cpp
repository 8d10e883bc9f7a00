#include "models/nn/head.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/ops/cross_entropy.h"
#include "models/ops/matrix_product.h"
#include "models/ops/rms_norm.h"

namespace zero {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Options {
  double eps = 0;
  std::int64_t logits_bytes = 0;
  double gradient_scale = 1;
  bool want_x = false, want_output = false;  // gradients
  bool some_on_meta = false;
};

/// Gradients of everything up to the normed rows and of the output matrix, summed chunk by chunk.
struct ChunkSums {
  at::Tensor dz;       // [n, hidden]
  at::Tensor doutput;  // [vocabulary, hidden] in fp32 (fp64 in fp64)

  void add(at::Tensor& dlogits, const at::Tensor& z, const at::Tensor& output, std::int64_t begin,
           const Options& options) {
    if (options.want_x) {
      at::Tensor mine = dz.narrow(0, begin, dlogits.size(0));
      matrix_product_into(mine, dlogits, output);
    }
    if (!options.want_output) return;
    const auto wide = z.options().dtype(at::toOpMathType(z.scalar_type()));
    if (!doutput.defined()) doutput = at::zeros({dlogits.size(1), z.size(1)}, wide);
    add_product_(doutput, dlogits, z.narrow(0, begin, dlogits.size(0)));
  }
};

/// gradient *= factor, which is nearly always 1; on a CPU that is looked at.
void multiply(at::Tensor& gradient, const at::Tensor& factor) {
  if (!gradient.defined() || (factor.is_cpu() && factor.item<double>() == 1)) return;
  gradient.mul_(factor);
}

/// The rows under the norm; `rstd` is empty where there is none.
RmsNormed normed_rows(const at::Tensor& rows, const at::Tensor& norm, double eps) {
  return norm.defined() ? rms_norm(rows, norm, eps)
                        : RmsNormed{rows, at::empty({0}, rows.options().dtype(at::toOpMathType(rows.scalar_type())))};
}

class HeadLossFunction : public torch::autograd::Function<HeadLossFunction> {
 public:
  enum Argument { x_, output_, targets_, norm_ };

  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& output,
                            const at::Tensor& targets, const std::optional<at::Tensor>& weight,
                            const Options& options) {
    const at::Tensor norm = weight.value_or(at::Tensor());
    at::Tensor rows = x.reshape({-1, x.size(-1)}).contiguous(), wanted = targets.reshape({-1}).contiguous();
    const at::Tensor kept = trained_rows(rows, wanted, options.some_on_meta);
    if (kept.defined()) {
      rows = rows.index_select(0, kept);
      wanted = wanted.index_select(0, kept);
    }
    const RmsNormed normed = normed_rows(rows, norm, options.eps);
    const std::int64_t row_bytes = output.size(0) * std::int64_t(output.element_size());
    const std::vector<std::int64_t> chunks = logits_chunks(rows, row_bytes, options.logits_bytes);
    const bool want = options.want_x || options.want_output, one_chunk = chunks.size() <= 2;

    at::Tensor loss = at::zeros({}, normed.rstd.options()), logits;
    const at::Tensor scale = at::full({}, options.gradient_scale, normed.rstd.options());
    ChunkSums sums;
    if (want && !one_chunk && options.want_x) sums.dz = at::empty_like(rows);
    for (std::size_t p = 0; p < chunks.size(); p += 2) {
      const std::int64_t begin = chunks[p], size = chunks[p + 1] - begin;
      logits = matrix_product(normed.y.narrow(0, begin, size), output.t());
      const at::Tensor theirs = wanted.narrow(0, begin, size);
      const CrossEntropy found = want ? cross_entropy_gradient_(logits, theirs, scale) : cross_entropy(logits, theirs);
      loss.add_(found.loss);
      if (want && !one_chunk) sums.add(logits, normed.y, output, begin, options);
    }
    if (!want) return loss;
    if (!one_chunk) logits = at::Tensor();
    context->save_for_backward({x, norm, output, normed.rstd, scale, kept, logits, sums.dz, sums.doutput});
    return loss;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &norm = saved[1], &output = saved[2], &rstd = saved[3], &kept = saved[5],
                     &dlogits = saved[6], factor = grads[0] / saved[4];
    at::Tensor dz = saved[7], doutput = saved[8];
    const bool want_x = context->needs_input_grad(x_), want_norm = norm.defined() && context->needs_input_grad(norm_);
    const bool want_output = context->needs_input_grad(output_);
    at::Tensor rows = x.reshape({-1, x.size(-1)}).contiguous();
    if (kept.defined()) rows = rows.index_select(0, kept);

    if (rows.size(0) == 0) {
      return {want_x ? at::zeros_like(x) : at::Tensor(),
              want_output ? at::zeros_like(output) : at::Tensor(),
              {},
              want_norm ? at::zeros_like(norm) : at::Tensor(),
              {}};
    }
    if (dlogits.defined()) {
      if (want_output) doutput = matrix_product(dlogits.t(), norm.defined() ? rms_norm_again(rows, norm, rstd) : rows);
      if (want_x || want_norm) dz = matrix_product(dlogits, output);
    }
    if (want_output) {
      multiply(doutput, factor);
      doutput = doutput.to(output.scalar_type());
    }
    if (want_x || want_norm) multiply(dz, factor);
    if (!want_x && !want_norm) return {{}, doutput, {}, {}, {}};
    RmsNormGradients gradients{dz, {}};
    if (norm.defined()) gradients = rms_norm_backward(dz, rows, norm, rstd, want_norm);
    at::Tensor dx = gradients.x;
    if (kept.defined()) dx = at::zeros({x.numel() / x.size(-1), x.size(-1)}, x.options()).index_copy_(0, kept, dx);
    return {dx.view(x.sizes()), doutput, {}, gradients.weight, {}};
  }
};

}  // namespace

at::Tensor head_loss(const at::Tensor& x, const HeadWeights& weights, const at::Tensor& targets,
                     const HeadLossOptions& options) {
  const bool graph = at::GradMode::is_enabled();
  const bool norm_learns = weights.norm.defined() && weights.norm.requires_grad();
  const Options own{weights.eps,
                    options.logits_bytes,
                    options.gradient_scale,
                    graph && (x.requires_grad() || norm_learns),
                    graph && weights.output.requires_grad(),
                    options.ignores_targets_on_meta};
  const auto norm = weights.norm.defined() ? std::optional(weights.norm) : std::nullopt;
  return HeadLossFunction::apply(x, weights.output, targets, norm, own);
}

at::Tensor head_logits(const at::Tensor& x, const HeadWeights& weights) {
  const at::NoGradGuard no_grad;
  const at::Tensor rows = x.reshape({-1, x.size(-1)}).contiguous();
  const at::Tensor logits = matrix_product(normed_rows(rows, weights.norm, weights.eps).y, weights.output.t());
  return logits.view({x.size(0), x.size(1), weights.output.size(0)}).to(at::toOpMathType(logits.scalar_type()));
}

}  // namespace zero
