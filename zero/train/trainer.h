#pragma once
// Trainer: the training loop. One readable step over an engine, its data and its records.
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <ostream>

#include "offload/ledger.h"
#include "zero/data/loader.h"
#include "zero/engine.h"
#include "zero/optim/loss_scale.h"
#include "zero/optim/schedule.h"
#include "zero/train/batch_arithmetic.h"
#include "zero/train/config.h"
#include "zero/train/first_step_dump.h"
#include "zero/train/metrics.h"
#include "zero/train/progress.h"

namespace zero {

/// What a run learns from and is checked against.
struct TrainingData {
  std::unique_ptr<Loader> training;
  std::unique_ptr<ValidationLoader> validation;  // null when there is none
};

/// Where rank 0 writes what happened; null on the other ranks.
struct Records {
  std::unique_ptr<MetricsWriter> metrics;
  std::unique_ptr<Progress> progress;
};

class Trainer {
 public:
  /// Everything outlives the trainer. `steps` is the length of the run.
  Trainer(const Config& config, std::int64_t steps, Engine& engine, TrainingData& data, Records& records, Ledger& ledger);

  /// Trains from the first step to the last. Throws Error when a gradient is not finite (fp16 skips the step instead). On a GPU
  /// what a step found is read when the next one is under way, so errors and the loss scale come a step later.
  void run();

 private:
  /// A step whose findings have not been read.
  struct Issued {
    std::int64_t step = 0;
    PendingStep pending;
    double trained = 0;          // tokens of the step
    std::int64_t tokens = 0;     // of the run, this step included
    std::int64_t trained_tokens = 0;
  };
  void train_step(std::int64_t step);
  at::Tensor forward_backward(std::int64_t step, double scale);
  bool validates(std::int64_t step) const;
  void settle();
  void judge(std::int64_t step, const StepFindings& findings);
  double validation_loss();
  void record(const Issued& issued, const StepFindings& findings);

  const Config& config_;
  std::int64_t steps_;
  Engine& engine_;
  TrainingData& data_;
  Records& records_;
  Ledger& ledger_;
  ScheduleOptions schedule_;
  std::optional<LossScale> loss_scale_;
  std::optional<FirstStepDump> dump_;

  std::deque<Issued> issued_;
  std::chrono::steady_clock::time_point begin_;
  double last_seconds_ = 0;
  std::int64_t last_tokens_ = 0;
  std::int64_t tokens_ = 0;
  std::int64_t trained_tokens_ = 0;
};

}  // namespace zero
