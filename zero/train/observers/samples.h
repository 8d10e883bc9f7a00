#pragma once
// Samples: at the end of each validation the model continues the prompts of metrics.samples. Rank 0 writes the texts to
// samples.jsonl.
#include <memory>
#include <optional>
#include <vector>

#include "zero/train/sample_prompts.h"
#include "zero/train/step_loop.h"

namespace zero {

/// All ranks compute the same continuations, because any of them may hold a part of the weights. A run that is asked to
/// stop drops the continuations that it has begun.
class Samples final : public StepObserver {
 public:
  /// All of these must outlive the observer.
  Samples(const Config& config, StepLoop& loop, Engine& engine, const SamplePrompts& prompts)
      : config_(config), loop_(loop), engine_(engine), samples_(prompts) {}

  void resumed(const RunPosition& position) override;
  void run_begins() override;
  void went_back(const RunPosition& position) override;

  /// Continues the prompts with the weights after `step` (counted from 1), when its validation ends. Collective.
  void write(std::int64_t step);

 private:
  using Ids = Generator::Ids;
  void open(std::int64_t last_step);
  std::vector<Ids> prompts() const;
  /// Returns none if the run stops. Collective.
  std::optional<std::vector<Ids>> generated();

  const Config& config_;
  StepLoop& loop_;
  Engine& engine_;
  const SamplePrompts& samples_;
  std::unique_ptr<MetricsWriter> file_;  // rank 0's
  bool resumed_ = false;
};

}  // namespace zero
