#include "zero/train/divergence.h"

#include <ATen/ATen.h>

#include "models/decoder/decoder.h"
#include "models/loss/dpo_loss.h"
#include "models/loss/sequence_loss.h"
#include "zero/train/training_batches.h"

namespace zero {

at::Tensor log_probabilities_of(Engine& engine, const Batch& batch, std::int64_t sequences) {
  const Batch there = on_device(engine, batch);
  ForwardContext context;
  context.batch = &there;
  const at::Tensor losses = engine.evaluate(context, token_losses_of);
  return SequenceLoss(sequences).log_probabilities(losses, there).to(at::kCPU, at::kFloat);
}

double divergence_of(Engine& engine, const MismatchedBatches& batches) {
  const at::Tensor ratios = at::zeros({batches.rows}, at::kFloat);
  const bool counts = engine.mesh().index(axes::rows.others()) == 0;
  for (std::int64_t m = 0; m < batches.micro_batches; ++m) {
    if (m > 0 && batches.goes_on && !batches.goes_on()) break;
    const Batch batch = batches.batch(m);
    const at::Tensor p = log_probabilities_of(engine, batch, 1);
    if (!counts || p.size(0) == 0) continue;
    ratios.narrow(0, batches.first_row(m), p.size(0)).copy_((p - named_tensor(batch, reference_name)).select(1, 0));
  }
  engine.host().all_reduce(ratios, {}, {Phase::other});
  const double mean = ratios.to(at::kDouble).mean().item<double>();
  return mean < 0 ? 0 : mean;
}

}  // namespace zero
