#include "zero/train/training_batches.h"

#include <ATen/ATen.h>

#include "base/activity_clock.h"
#include "base/random.h"
#include "models/loss/kto_loss.h"
#include "models/nn/device_batch.h"

namespace zero {

Batch on_device(const Engine& engine, const Batch& batch) {
  return to_device(batch, engine.device(), engine.options().precision.compute);
}

void add_divergence(Batch& batch, double divergence) {
  if (batch.ids.size(0) > 0) batch.named[divergence_name] = at::full({batch.ids.size(0), 1}, divergence, at::kFloat);
}

Batch TrainingBatches::batch(std::int64_t step, std::int64_t index) {
  const ActivityScope scope(Activity::data);
  Batch batch = loader_.batch(step, index);
  if (divergence_) add_divergence(batch, *divergence_);
  return on_device(engine_, batch);
}

ContextOf TrainingBatches::contexts(std::int64_t step) {
  return [this, step](std::int64_t index, Batch& held) {
    held = batch(step, index);
    ForwardContext context;
    context.batch = &held;
    context.loss = &loader_.loss();
    context.training = true;
    context.seed = mix_seed(std::uint64_t(config_.training.seed), std::uint64_t(step));
    context.first_sample = loader_.first_sample(step, index);
    return context;
  };
}

}  // namespace zero
