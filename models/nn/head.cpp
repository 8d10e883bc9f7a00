#include "models/nn/head.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/loss/loss.h"
#include "models/loss/sequence_loss.h"
#include "models/loss_terms.h"
#include "models/ops/matrix_product.h"
#include "models/ops/rms_norm.h"

namespace zero {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Options {
  double eps = 0;
  const ForwardContext* pass = nullptr;
  bool want_x = false, want_output = false;  // gradients
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

/// The trained tokens of a batch under the norm, and the chunks of their logits.
struct HeadTokens {
  at::Tensor rows;     // [n, hidden]
  at::Tensor targets;  // [n]
  at::Tensor kept;     // [n], their places in the batch; undefined: all
  RmsNormed normed;
  std::vector<std::int64_t> chunks;  // as logits_chunks()

  HeadTokens(const at::Tensor& x, const at::Tensor& output, const at::Tensor& of_batch, const at::Tensor& norm,
             double eps, const ForwardContext& pass) {
    rows = x.reshape({-1, x.size(-1)}).contiguous();
    targets = of_batch.reshape({-1}).contiguous();
    kept = trained_rows(rows, targets, pass.batch->meta.ignores_targets);
    if (kept.defined()) {
      rows = rows.index_select(0, kept);
      targets = targets.index_select(0, kept);
    }
    normed = normed_rows(rows, norm, eps);
    chunks = logits_chunks(rows, output.size(0) * std::int64_t(output.element_size()), pass.logits_bytes);
  }

  bool one_chunk() const { return chunks.size() <= 2; }
  std::int64_t length(std::size_t p) const { return chunks[p + 1] - chunks[p]; }
  LossChunk chunk(std::size_t p, const Batch& batch) const {
    return {batch, targets.narrow(0, chunks[p], length(p)), kept, chunks[p]};
  }
  at::Tensor logits(std::size_t p, const at::Tensor& output) const {
    return matrix_product(normed.y.narrow(0, chunks[p], length(p)), output.t());
  }
  /// [B, T] of a value of each of the tokens, 0 for the others.
  at::Tensor spread(const at::Tensor& values, at::IntArrayRef batch) const {
    if (!kept.defined()) return values.view(batch);
    return at::zeros({c10::multiply_integers(batch)}, values.options()).index_copy_(0, kept, values).view(batch);
  }
};

void add_part(at::Tensor& sum, const at::Tensor& part) {
  if (part.defined()) sum = sum.defined() ? sum + part : part;
}

/// The first look of a loss that looks twice: its value of each token, [n].
at::Tensor values_of_tokens(const Loss& loss, const HeadTokens& tokens, const at::Tensor& output, const Batch& batch,
                            at::Tensor& logits) {
  const at::Tensor values = at::zeros({tokens.rows.size(0)}, tokens.normed.rstd.options());
  for (std::size_t p = 0; p < tokens.chunks.size(); p += 2) {
    logits = tokens.logits(p, output);
    values.narrow(0, tokens.chunks[p], tokens.length(p))
        .copy_(loss.of_chunk(logits, tokens.chunk(p, batch), nullptr).value);
  }
  return values;
}

class HeadLossFunction : public torch::autograd::Function<HeadLossFunction> {
 public:
  enum Argument { x_, output_, targets_, norm_ };

  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& output,
                            const at::Tensor& targets, const std::optional<at::Tensor>& weight,
                            const Options& options) {
    const at::Tensor norm = weight.value_or(at::Tensor());
    const ForwardContext& pass = *options.pass;
    const Loss& loss = loss_of(pass);
    const HeadTokens tokens(x, output, targets, norm, options.eps, pass);
    const bool want = options.want_x || options.want_output, one_chunk = tokens.one_chunk();

    at::Tensor value = at::zeros({}, tokens.normed.rstd.options()), logits, weights, figures;
    const at::Tensor scale = at::full({}, pass.gradient_scale, tokens.normed.rstd.options());
    const bool twice = loss.looks_twice();
    if (twice && x.size(0) > 0) {
      const at::Tensor values = values_of_tokens(loss, tokens, output, *pass.batch, logits);
      const LossVerdict verdict = loss.judge(tokens.spread(values, targets.sizes()), *pass.batch);
      value.add_(verdict.value);
      weights = verdict.weights;
      figures = verdict.figures;
    }
    ChunkSums sums;
    if (want && !one_chunk && options.want_x) sums.dz = at::empty_like(tokens.rows);
    for (std::size_t p = 0; p < tokens.chunks.size() && (want || !twice); p += 2) {
      if (!twice || !one_chunk) logits = tokens.logits(p, output);
      LossChunk chunk = tokens.chunk(p, *pass.batch);
      chunk.weights = weights;
      const LossPart part = loss.of_chunk(logits, chunk, want ? &scale : nullptr);
      if (!twice) {
        value.add_(part.value);
        add_part(figures, part.figures);
      }
      if (want && !one_chunk) sums.add(logits, tokens.normed.y, output, tokens.chunks[p], options);
    }
    report(loss, figures, value, pass);
    if (!want) return value;
    if (!one_chunk) logits = at::Tensor();
    context->save_for_backward(
        {x, norm, output, tokens.normed.rstd, scale, tokens.kept, logits, sums.dz, sums.doutput});
    return value;
  }

  /// A batch without tokens has the same names.
  static void report(const Loss& loss, const at::Tensor& figures, const at::Tensor& like, const ForwardContext& pass) {
    if (!pass.terms) return;
    const std::vector<std::string> names = loss.figures();
    for (std::size_t i = 0; i < names.size(); ++i)
      pass.terms->tell(names[i], figures.defined() ? figures[std::int64_t(i)] : at::zeros_like(like));
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

at::Tensor head_loss(const at::Tensor& x, const HeadWeights& weights, const ForwardContext& context) {
  const bool graph = at::GradMode::is_enabled();
  const bool norm_learns = weights.norm.defined() && weights.norm.requires_grad();
  const Options own{weights.eps, &context, graph && (x.requires_grad() || norm_learns),
                    graph && weights.output.requires_grad()};
  const auto norm = weights.norm.defined() ? std::optional(weights.norm) : std::nullopt;
  return HeadLossFunction::apply(x, weights.output, context.batch->targets, norm, own);
}

at::Tensor head_token_losses(const at::Tensor& x, const HeadWeights& weights, const ForwardContext& context) {
  const at::NoGradGuard no_grad;
  const at::Tensor& targets = context.batch->targets;
  const HeadTokens tokens(x, weights.output, targets, weights.norm, weights.eps, context);
  at::Tensor logits;
  return tokens.spread(values_of_tokens(SequenceLoss(), tokens, weights.output, *context.batch, logits),
                       targets.sizes());
}

at::Tensor head_logits(const at::Tensor& x, const HeadWeights& weights) {
  const at::NoGradGuard no_grad;
  const at::Tensor rows = x.reshape({-1, x.size(-1)}).contiguous();
  const at::Tensor logits = matrix_product(normed_rows(rows, weights.norm, weights.eps).y, weights.output.t());
  return logits.view({x.size(0), x.size(1), weights.output.size(0)}).to(at::toOpMathType(logits.scalar_type()));
}

}  // namespace zero
