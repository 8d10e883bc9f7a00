#include "models/loss/token_losses.h"

#include <ATen/ATen.h>

#include <limits>

#include "base/error.h"
#include "base/log.h"
#include "comm/communicator.h"
#include "models/ops/cross_entropy.h"
#include "models/undivided.h"

namespace zero {
namespace {

/// The factors of the rows' gradients: [] for all, or [n].
at::Tensor factors_of(const at::Tensor& scale, const at::Tensor& weights) {
  return weights.defined() ? weights.to(scale.scalar_type()).mul(scale).contiguous() : scale;
}

/// Losses of rows without a trained target are 0; a target beyond the vocabulary makes NaN.
at::Tensor masked(const at::Tensor& losses, const at::Tensor& targets, std::int64_t vocabulary) {
  if (targets.is_cpu() || targets.is_meta()) return losses;
  return losses.masked_fill(targets < 0, 0)
      .masked_fill(targets >= vocabulary, std::numeric_limits<double>::quiet_NaN());
}

void require_below(const at::Tensor& targets, std::int64_t vocabulary) {
  if (!targets.is_cpu() || targets.numel() == 0) return;
  const auto largest = targets.max().item<std::int64_t>();
  if (largest >= vocabulary) throw Error(text("a target is token ", largest, ", and the vocabulary has ", vocabulary));
}

/// Each rank finds log-sum-exp and the target's logit among its own columns, and all ranks exchange both.
at::Tensor sliced_token_losses(at::Tensor& logits, const at::Tensor& targets, const at::Tensor* scale,
                               const at::Tensor& weights, const VocabularySlice& vocabulary) {
  require_below(targets, vocabulary.full);
  const Undivided sums;
  const at::Tensor shifted = targets - vocabulary.begin, trained = targets >= 0;
  const at::Tensor here = (shifted >= 0).bitwise_and_(shifted < logits.size(1)).bitwise_and_(trained);
  const at::Tensor columns = shifted.masked_fill(here.bitwise_not(), 0).masked_fill_(trained.bitwise_not(), -1);

  const at::Tensor own = cross_entropy(logits, columns).lse;
  const at::Tensor chosen = logits.gather(1, columns.clamp_min(0).unsqueeze(1)).squeeze(1).to(own.scalar_type());
  const at::Tensor mine = at::stack({own, chosen.masked_fill(here.bitwise_not(), 0)});
  const at::Tensor all = at::empty({vocabulary.ranks->size(), 2, targets.size(0)}, mine.options());
  vocabulary.ranks->all_gather_into(all.view({-1}), mine.view({-1}), {Phase::activations});
  const at::Tensor lse = all.select(1, 0).logsumexp(0), losses = lse - all.select(1, 1).sum(0);
  if (!scale) return masked(losses, targets, vocabulary.full);

  const at::Tensor factors = factors_of(*scale, weights);
  const at::Tensor first = logits.select(1, 0).to(lse.scalar_type(), false, /*copy=*/true);
  cross_entropy_backward_(logits, columns, lse, factors);
  // A row whose target is elsewhere has none here: its first column is the softmax alone.
  const at::Tensor elsewhere = here.bitwise_not().bitwise_and_(trained), column = logits.select(1, 0);
  const at::Tensor softmax = (first - lse).exp_().mul_(factors).masked_fill_(elsewhere.bitwise_not(), 0);
  column.masked_fill_(elsewhere, 0).add_(softmax.to(logits.scalar_type()));
  return masked(losses, targets, vocabulary.full);
}

}  // namespace

at::Tensor token_losses(at::Tensor& logits, const at::Tensor& targets, const at::Tensor* scale,
                        const at::Tensor& weights, const VocabularySlice& vocabulary) {
  if (vocabulary.divides()) return sliced_token_losses(logits, targets, scale, weights, vocabulary);
  const at::Tensor places = targets.clamp(0, logits.size(1) - 1).unsqueeze(1);
  const at::Tensor chosen = logits.gather(1, places).squeeze(1);  // before logits become their gradient
  const at::Tensor lse =
      (scale ? cross_entropy_gradient_(logits, targets, factors_of(*scale, weights)) : cross_entropy(logits, targets))
          .lse;
  return masked(lse - chosen.to(lse.scalar_type()), targets, logits.size(1));
}

}  // namespace zero
