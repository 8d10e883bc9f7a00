#include "zero/train/training.h"

#include "zero/train/observers/best_model.h"
#include "zero/train/observers/first_step_dump.h"
#include "zero/train/observers/metrics_records.h"
#include "zero/train/observers/nonfinite_steps.h"
#include "zero/train/observers/progress_lines.h"
#include "zero/train/observers/samples.h"
#include "zero/train/observers/step_divergence.h"
#include "zero/train/observers/step_parts.h"
#include "zero/train/observers/stops_on_request.h"
#include "zero/train/observers/tensorboard_events.h"
#include "zero/train/observers/trackio_rows.h"
#include "zero/train/observers/validation.h"

namespace zero {

Training::Training(const Config& config, std::int64_t steps, Engine& engine, const TrainingParts& parts)
    : batches_(config, engine, *parts.data.training),
      loop_(config, steps, engine, batches_),
      rule_(config.training),
      states_(engine) {
  const auto list = [&](auto observer) -> auto& {
    auto& listed = *observer;
    loop_.observe(listed);
    observers_.push_back(std::move(observer));
    return listed;
  };
  auto saving = std::make_unique<CheckpointSaving>(CheckpointSaving::Parts{
      config, loop_, engine.host(), parts.checkpoints, parts.records, parts.clock, rule_, states_});
  for (const MakeObserver& make : parts.observers) list(make({engine, loop_, *saving}));
  list(std::make_unique<StepParts>(config, loop_, engine, parts.data.training->micro_batches()));
  list(std::make_unique<MetricsRecords>(config, loop_, engine, parts.tracker, parts.records));
  list(std::make_unique<TensorBoardEvents>(config, loop_, parts.records));
  list(std::make_unique<TrackioRows>(config, loop_, parts.records));
  list(std::make_unique<ProgressLines>(parts.records));
  // At a boundary a run is saved, validated, compared, rolled back and stopped, in this order.
  CheckpointSaving& saves = list(std::move(saving));
  Samples* samples = parts.samples ? &list(std::make_unique<Samples>(config, loop_, engine, *parts.samples)) : nullptr;
  list(std::make_unique<Validation>(Validation::Parts{config, loop_, engine, parts.data.validation.get(),
                                                      parts.data.mismatched_validation.get(), saves, parts.clock,
                                                      samples}));
  if (config.follows_best())
    list(std::make_unique<BestModel>(BestModel::Parts{config, loop_, engine, saves, parts.clock, parts.run}));
  list(std::make_unique<NonfiniteSteps>(
      NonfiniteSteps::Parts{config, loop_, engine, batches_, rule_, states_, saves, parts.restore}));
  list(std::make_unique<StopsOnRequest>(
      StopsOnRequest::Parts{config, loop_, saves, states_, parts.clock, parts.stop, engine.host().rank() == 0}));
  // After NonfiniteSteps, which passes steps over.
  if (parts.data.mismatched) list(std::make_unique<StepDivergence>(engine, batches_, *parts.data.mismatched));
  // Add new outputs of a run here.
  list(std::make_unique<FirstStepDump>(config.metrics.dump_first_step, engine, batches_));
}

}  // namespace zero
