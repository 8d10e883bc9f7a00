#include "models/loss/cross_entropy_loss.h"

#include <ATen/ATen.h>

#include "models/loss/token_losses.h"
#include "models/ops/cross_entropy.h"
#include "models/undivided.h"

namespace zero {
namespace {

class CrossEntropyLoss final : public Loss {
 public:
  std::string name() const override { return "cross_entropy"; }
  double count(const RowCounts& row) const override { return double(row.trained_tokens); }
  bool takes_slices() const override { return true; }

  LossPart of_chunk(at::Tensor& logits, const LossChunk& chunk, const at::Tensor* scale) const override {
    const at::Tensor weights = weights_of(chunk);
    if (weights.defined() || chunk.vocabulary.divides()) {
      const at::Tensor each = token_losses(logits, chunk.targets, scale, weights, chunk.vocabulary);
      const Undivided sums;
      return {(weights.defined() ? each.mul(weights) : each).sum(), {}};
    }
    return {
        (scale ? cross_entropy_gradient_(logits, chunk.targets, *scale) : cross_entropy(logits, chunk.targets)).loss,
        {}};
  }
};

}  // namespace

const Loss& cross_entropy_loss() {
  static const CrossEntropyLoss loss;
  return loss;
}

}  // namespace zero
