#include "models/nn/head.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "base/error.h"
#include "models/gradient_place.h"
#include "models/loss/loss.h"
#include "models/loss/sequence_loss.h"
#include "models/loss_terms.h"
#include "models/ops/matrix_product.h"
#include "models/ops/rms_norm.h"
#include "models/parallel/saved_split.h"

namespace zero {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

VocabularySlice slice_of(const HeadWeights& weights, const ForwardContext& context) {
  const TokenSplit split(context);
  if (!split.divides()) return {};
  return {&split.ranks(), weights.first_token, weights.vocabulary};
}

/// [n, vocabulary] of all ranks' logits [n, own vocabulary].
at::Tensor gather_columns(const at::Tensor& own, const VocabularySlice& slice) {
  const std::int64_t ranks = slice.ranks->size(), rows = own.size(0), most = (slice.full - 1) / ranks + 1;
  const at::Tensor padded = at::constant_pad_nd(own, {0, most - own.size(1)}, 0).contiguous(),
                   all = at::empty({ranks, rows, most}, own.options());
  if (all.numel() > 0) slice.ranks->all_gather_into(all.view({-1}), padded.view({-1}), {Phase::activations});
  std::vector<at::Tensor> parts;
  for (std::int64_t r = 0; r < ranks; ++r)
    parts.push_back(all.select(0, r).narrow(1, 0, slice.full * (r + 1) / ranks - slice.full * r / ranks));
  return at::cat(parts, 1);
}

struct Options {
  double eps = 0;
  const ForwardContext* pass = nullptr;
  bool want_x = false, want_output = false;  // gradients
  VocabularySlice vocabulary = {};
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

/// gradient *= factor. The factor is nearly always 1, which a CPU checks first.
void multiply(at::Tensor& gradient, const at::Tensor& factor) {
  if (!gradient.defined() || (factor.is_cpu() && factor.item<double>() == 1)) return;
  gradient.mul_(factor);
}

/// The output matrix's gradient from its sum over chunks, as gradient_of() returns it.
at::Tensor summed_gradient(const at::Tensor& output, const at::Tensor& wide) {
  if (wide.scalar_type() == output.scalar_type() && !GradientPlace::open_on(output)) return wide;
  return gradient_of(output, [&](at::Tensor& sum, bool adds) { adds ? sum.add_(wide) : sum.copy_(wide); });
}

/// The rows after the norm. `rstd` is empty if there is no norm.
RmsNormed normed_rows(const at::Tensor& rows, const at::Tensor& norm, double eps) {
  return norm.defined() ? rms_norm(rows, norm, eps)
                        : RmsNormed{rows, at::empty({0}, rows.options().dtype(at::toOpMathType(rows.scalar_type())))};
}

/// How to get a batch's trained tokens from this rank's rows. A single rank selects and normalises them. If ranks of
/// the tensor axis share the tokens, each normalises its own, all are gathered, and then the trained ones are selected.
/// On a context axis this applies to the rank's part of the batch.
struct TrainedRows {
  TokenSplit split;
  at::Tensor kept;  // [n], their places in the part; undefined: all

  /// Selects rows [m, hidden] for the norm from x [..., hidden].
  at::Tensor to_norm(const at::Tensor& x) const {
    const at::Tensor rows = x.reshape({-1, x.size(-1)}).contiguous();
    return kept.defined() && !split.divides() ? rows.index_select(0, kept) : rows;
  }
  /// Selects the trained tokens [n, hidden] from normalised rows.
  at::Tensor to_multiply(const at::Tensor& normed) const {
    if (!split.divides()) return normed;
    const at::Tensor all = split.gather(normed);
    return kept.defined() ? all.index_select(0, kept) : all;
  }
  /// Maps the gradient of the trained tokens to that of the normalised rows.
  at::Tensor back_to_norm(const at::Tensor& dz) const {
    return split.divides() ? split.sum(spread(dz, split.part())) : dz;
  }
  /// Maps the gradient of the norm's rows to that of x.
  at::Tensor back_to_x(const at::Tensor& drows, const at::Tensor& x) const {
    return (split.divides() ? drows : spread(drows, x.numel() / x.size(-1))).view(x.sizes());
  }
  /// The indices [n] of the trained tokens in the batch. Undefined means all tokens.
  at::Tensor places(std::int64_t count, at::Device device) const {
    if (!split.has_parts()) return kept;
    const at::Tensor in_part = kept.defined() ? kept : at::arange(count, at::TensorOptions(at::kLong).device(device));
    return (in_part + split.first()).clamp_max(split.tokens() - 1);  // a GPU keeps padding, which no weight counts
  }
  /// Rows for `tokens` tokens: the given rows for trained ones, zeros for the others.
  at::Tensor spread(const at::Tensor& rows, std::int64_t tokens) const {
    if (!kept.defined()) return rows;
    std::vector<std::int64_t> shape = rows.sizes().vec();
    shape[0] = tokens;
    return at::zeros(shape, rows.options()).index_copy_(0, kept, rows);
  }
};

/// Selects a part's targets from the batch's. Padding after the batch is not trained.
at::Tensor trained_in_part(const at::Tensor& targets, const TokenSplit& split) {
  at::Tensor part = split.part_rows(targets);
  const std::int64_t there = std::clamp<std::int64_t>(split.tokens() - split.first(), 0, split.part());
  if (there < split.part()) part.narrow(0, there, split.part() - there).fill_(ignored_target);
  return part;
}

/// A batch's trained tokens after the norm, and the chunks of their logits.
struct HeadTokens {
  TrainedRows trained;
  at::Tensor targets;  // [n]
  at::Tensor places;   // as LossChunk::places
  at::Tensor rstd;
  at::Tensor z;                      // [n, hidden]
  std::vector<std::int64_t> chunks;  // as logits_chunks()
  VocabularySlice vocabulary;

  HeadTokens(const at::Tensor& x, const at::Tensor& output, const at::Tensor& of_batch, const at::Tensor& norm,
             double eps, const ForwardContext& pass, const VocabularySlice& slice)
      : vocabulary(slice) {
    trained.split = TokenSplit(pass);
    targets = of_batch.reshape({-1}).contiguous();
    if (trained.split.has_parts()) targets = trained_in_part(targets, trained.split);
    const at::Tensor all = trained.split.divides() ? x.new_empty({targets.size(0), 1}) : x.reshape({-1, x.size(-1)});
    trained.kept = trained_rows(all, targets, pass.batch->meta.ignores_targets);
    if (trained.kept.defined()) targets = targets.index_select(0, trained.kept);
    places = trained.places(targets.size(0), targets.device());
    const RmsNormed normed = normed_rows(trained.to_norm(x), norm, eps);
    rstd = normed.rstd;
    z = trained.to_multiply(normed.y);
    // Equal on all ranks, though their slices may differ by one.
    const std::int64_t width = slice.divides() ? (slice.full - 1) / slice.ranks->size() + 1 : output.size(0);
    chunks = logits_chunks(z, width * std::int64_t(output.element_size()), pass.logits_bytes);
  }

  bool one_chunk() const { return chunks.size() <= 2; }
  std::int64_t length(std::size_t p) const { return chunks[p + 1] - chunks[p]; }
  LossChunk chunk(std::size_t p, const Batch& batch) const {
    return {batch, targets.narrow(0, chunks[p], length(p)), places, chunks[p], {}, vocabulary};
  }
  at::Tensor logits(std::size_t p, const at::Tensor& output) const {
    return matrix_product(z.narrow(0, chunks[p], length(p)), output.t());
  }
  /// Spreads values of tokens to [B, T], with 0 for all other tokens. Gathers those of other parts, which is collective
  /// over the context axis.
  at::Tensor spread(const at::Tensor& values, at::IntArrayRef batch) const {
    const std::int64_t tokens = c10::multiply_integers(batch);
    if (!trained.split.has_parts()) return trained.spread(values, tokens).view(batch);
    const at::Tensor all = at::zeros({tokens}, values.options()).index_add_(0, places, values);
    sum_over(trained.split.context(), all);
    return all.view(batch);
  }
  /// True for the rank that adds what is the same on all ranks of the context axis.
  bool adds_common() const { return !trained.split.has_parts() || trained.split.context().rank() == 0; }
};

void add_part(at::Tensor& sum, const at::Tensor& part) {
  if (part.defined()) sum = sum.defined() ? sum + part : part;
}

/// The first pass of a loss that looks twice: the value of each token, [n].
at::Tensor values_of_tokens(const Loss& loss, const HeadTokens& tokens, const at::Tensor& output, const Batch& batch,
                            at::Tensor& logits) {
  const at::Tensor values = at::zeros({tokens.z.size(0)}, tokens.rstd.options());
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
    const HeadTokens tokens(x, output, targets, norm, options.eps, pass, options.vocabulary);
    const bool want = options.want_x || options.want_output, one_chunk = tokens.one_chunk();

    at::Tensor value = at::zeros({}, tokens.rstd.options()), logits, weights, figures;
    const at::Tensor scale = at::full({}, pass.gradient_scale, tokens.rstd.options());
    const bool twice = loss.looks_twice();
    if (twice && targets.size(0) > 0) {
      const at::Tensor values = values_of_tokens(loss, tokens, output, *pass.batch, logits);
      const LossVerdict verdict = loss.judge(tokens.spread(values, targets.sizes()), *pass.batch);
      weights = verdict.weights;
      if (tokens.adds_common()) {
        value.add_(verdict.value);
        figures = verdict.figures;
      }
    }
    ChunkSums sums;
    if (want && !one_chunk && options.want_x) sums.dz = at::empty_like(tokens.z);
    for (std::size_t p = 0; p < tokens.chunks.size() && (want || !twice); p += 2) {
      if (!twice || !one_chunk) logits = tokens.logits(p, output);
      LossChunk chunk = tokens.chunk(p, *pass.batch);
      chunk.weights = weights;
      const LossPart part = loss.of_chunk(logits, chunk, want ? &scale : nullptr);
      if (!twice) {
        value.add_(part.value);
        add_part(figures, part.figures);
      }
      if (want && !one_chunk) sums.add(logits, tokens.z, output, tokens.chunks[p], options);
    }
    report(loss, figures, value, pass);
    if (!want) return value;
    if (!one_chunk) logits = at::Tensor();
    context->save_for_backward(
        {x, norm, output, tokens.rstd, scale, tokens.trained.kept, logits, sums.dz, sums.doutput});
    context->saved_data["split"] = SavedSplit::of(tokens.trained.split);
    context->saved_data["tokens"] = tokens.z.size(0);
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
    const at::Tensor &x = saved[0], &norm = saved[1], &output = saved[2], &rstd = saved[3];
    at::Tensor dlogits = saved[6], dz = saved[7], summed = saved[8], doutput;
    const bool want_x = context->needs_input_grad(x_), want_norm = norm.defined() && context->needs_input_grad(norm_);
    const bool want_output = context->needs_input_grad(output_);
    if (context->saved_data["tokens"].toInt() == 0) {
      return {want_x ? at::zeros_like(x) : at::Tensor(),
              want_output ? at::zeros_like(output) : at::Tensor(),
              {},
              want_norm ? at::zeros_like(norm) : at::Tensor(),
              {}};
    }
    const at::Tensor factor = grads[0] / saved[4];
    for (at::Tensor* gradient : {&dlogits, &dz, &summed}) multiply(*gradient, factor);
    const TrainedRows trained{SavedSplit::from(context->saved_data["split"]), saved[5]};
    const at::Tensor rows = trained.to_norm(x);
    if (dlogits.defined()) {
      if (want_output) {
        const at::Tensor z = trained.to_multiply(norm.defined() ? rms_norm_again(rows, norm, rstd) : rows);
        doutput =
            gradient_of(output, [&](at::Tensor& sum, bool adds) { matrix_product_into(sum, dlogits.t(), z, adds); });
      }
      if (want_x || want_norm) dz = matrix_product(dlogits, output);
    } else if (want_output) {
      doutput = summed_gradient(output, summed);
    }
    if (!want_x && !want_norm) return {{}, doutput, {}, {}, {}};
    RmsNormGradients gradients{trained.back_to_norm(dz), {}};
    if (norm.defined()) gradients = rms_norm_backward(gradients.x, rows, norm, rstd, want_norm);
    return {trained.back_to_x(gradients.x, x), doutput, {}, gradients.weight, {}};
  }
};

}  // namespace

at::Tensor head_loss(const at::Tensor& x, const HeadWeights& weights, const ForwardContext& context) {
  const bool graph = at::GradMode::is_enabled();
  const bool norm_learns = weights.norm.defined() && weights.norm.requires_grad();
  const Options own{weights.eps, &context, graph && (x.requires_grad() || norm_learns),
                    graph && weights.output.requires_grad(), slice_of(weights, context)};
  const Loss& loss = loss_of(context);
  if (const Communicator* ranks = own.vocabulary.ranks; ranks && !loss.takes_slices())
    throw InputError("the loss " + loss.name() + " reads whole rows of logits, and [parallel] tensor = " +
                     std::to_string(ranks->size()) + " divides them: leave parallel.tensor out");
  const auto norm = weights.norm.defined() ? std::optional(weights.norm) : std::nullopt;
  return HeadLossFunction::apply(x, weights.output, context.batch->targets, norm, own);
}

at::Tensor head_token_losses(const at::Tensor& x, const HeadWeights& weights, const ForwardContext& context) {
  const at::NoGradGuard no_grad;
  const at::Tensor& targets = context.batch->targets;
  const HeadTokens tokens(x, weights.output, targets, weights.norm, weights.eps, context, slice_of(weights, context));
  at::Tensor logits;
  return tokens.spread(values_of_tokens(SequenceLoss(), tokens, weights.output, *context.batch, logits),
                       targets.sizes());
}

at::Tensor head_logits(const at::Tensor& x, const HeadWeights& weights, const ForwardContext& context) {
  const at::NoGradGuard no_grad;
  const TrainedRows all{TokenSplit(context), {}};
  const at::Tensor z = all.to_multiply(normed_rows(all.to_norm(x), weights.norm, weights.eps).y);
  at::Tensor logits = matrix_product(z, weights.output.t());
  std::int64_t batch = x.size(0), length = x.size(1);
  if (all.split.divides()) logits = gather_columns(logits, slice_of(weights, context));
  if (all.split.any()) {
    logits = all.split.gather_parts(logits);
    batch = all.split.batch(), length = all.split.length();
  }
  return logits.view({batch, length, logits.size(1)}).to(at::toOpMathType(logits.scalar_type()));
}

}  // namespace zero
