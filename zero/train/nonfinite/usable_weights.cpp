#include "zero/train/nonfinite/usable_weights.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "comm/object_collectives.h"
#include "zero/config/optimizer_settings.h"
#include "zero/core/gradient_accumulation.h"
#include "zero/core/states/nonfinite_search.h"

namespace zero {

void require_usable_weights(const Config& config, std::int64_t steps, const NonfiniteRule& rule, Engine& engine,
                            TrainingBatches& batches) {
  std::int64_t step = steps;  // the last step that was not skipped, so its data are good
  while (step > 0 && rule.passes_over(step)) --step;
  if (step == 0) return;
  Batch batch;
  if (const auto failure =
          agreed_failure_of([&] { all_or_none(engine.host(), [&] { batch = batches.batch(step - 1, 0); }); })) {
    if (engine.host().rank() == 0) log_warning("the trained weights are not tried on their data: ", *failure);
    return;
  }
  const ContextOf context_of = [&](std::int64_t, Batch& held) {
    held = batch;
    ForwardContext context;
    context.batch = &held;
    context.loss = &batches.loader().loss();
    return context;
  };
  const double loss =
      accumulate_gradients(engine, 1, 1 / batches.loader().denominator(step - 1), context_of).item<double>();
  engine.mesh().ranks().failures().check();
  const std::vector<std::int64_t> finite = all_gather_number(engine.host(), std::isfinite(loss));
  const auto fail = [&](const char* what, const char* is) {
    throw Error(text("with the trained weights the ", what, " of the data of step ", step, " ", is,
                     " not finite: the last update has made them too large, and no model is written. Lower ",
                     keys_of_rates(config.optimizer)));
  };
  if (std::ranges::find(finite, 0) != finite.end()) fail("loss", "is");
  if (const auto gradients = nonfinite_gradients(engine)) fail("gradients", "are");
}

}  // namespace zero
