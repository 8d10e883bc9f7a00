#pragma once
// Trainer: the training loop. One readable step over an engine, its data and its records.
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>

#include "base/memory_tracker.h"
#include "zero/config/batch_arithmetic.h"
#include "zero/config/config.h"
#include "zero/core/engine.h"
#include "zero/data/rows/loader.h"
#include "zero/optim/loss_scale.h"
#include "zero/optim/schedule.h"
#include "zero/prove/step_recorder.h"
#include "zero/train/checkpoints.h"
#include "zero/train/first_step_dump.h"
#include "zero/train/metrics.h"
#include "zero/train/nonfinite/nonfinite_report.h"
#include "zero/train/nonfinite/nonfinite_rule.h"
#include "zero/train/progress.h"
#include "zero/train/run_clock.h"
#include "zero/train/stop_signal.h"

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

/// What a trainer works with beside the engine; all of it outlives the trainer.
struct TrainerParts {
  TrainingData& data;
  Records& records;
  MemoryTracker& tracker;
  Checkpoints* checkpoints = nullptr;  // null: none are written, whatever signals arrive
  const StopSignal* stop = nullptr;    // null: nobody asks to stop
  RunClock* clock = nullptr;           // rank 0's counts; null: no clock saves or ends the run
  // Brings the states of the newest checkpoint that verifies into the engine; throws on all ranks where there is none.
  // Collective. Empty: the run never goes back.
  std::function<RunPosition()> restore = {};
  StepRecorder* recorder = nullptr;  // null: the run is not recorded, and has its whole length
};

/// How a run came to its end.
enum class RunEnd : std::uint8_t { finished, stopped };

class Trainer {
 public:
  /// `steps` is the length of the run.
  Trainer(const Config& config, std::int64_t steps, Engine& engine, const TrainerParts& parts);

  /// Continues a run whose states the engine has.
  void resume(const RunPosition& position);

  /// Trains until the last step, or until a signal has reached any rank or the clock ends the run; then all ranks stop
  /// after the same step, or within its validation, with a checkpoint; a run that goes on from there validates first.
  /// What is to be saved after a step is saved before its validation. A step whose loss or gradients are not finite is not taken:
  /// training.on_nonfinite says whether it ends the run (Error), is skipped, or sends the run back to its newest
  /// checkpoint. Of fp16 that is what a lower loss scale does not mend; with "stop" the loss scale alone decides, and a
  /// run that ends with a loss that is not finite throws. Throws Error too when no step was taken at all, and when a
  /// stop finds no room for its checkpoint in the output directory (it says where the states are then). States that are
  /// not finite are never saved. On a GPU what a step found is read when the next one is under way, so errors, the loss
  /// scale and requests to stop come a step later.
  RunEnd run();

  /// Where the run stands: after the last step whose result was read.
  RunPosition position() const;

 private:
  /// A step whose result has not been read.
  struct Issued {
    std::int64_t step = 0;
    PendingStepResult pending;
    std::vector<at::Tensor> losses;  // of the micro-batches of this rank
    double denominator = 0;          // of the step's loss
    std::int64_t tokens = 0;         // of the run, this step included
    std::int64_t trained_tokens = 0;
    LossFigures figures = {};  // of this rank
  };
  void train_step(std::int64_t step);
  Batch on_device(const Batch& batch) const;
  at::Tensor forward_backward(std::int64_t step, double scale, std::vector<at::Tensor>& losses, LossFigures& figures);
  void take_step();
  bool validates(std::int64_t step) const;
  /// Whether the run ends where it stands.
  bool stops() const { return (stop_agreed_ || end_agreed_) && checkpoints_ && (steps_done_ < steps_ || owed_); }
  /// Whether it is saved where it stands.
  bool saves() const { return checkpoints_ && !checkpoints_->has(steps_done_) && (save_agreed_ || saves_after()); }
  /// As far as it is known before the step.
  bool saves_after() const { return checkpoints_ && (owes_save_ || checkpoints_->due(steps_done_, steps_)); }
  /// Whether a checkpoint of the run as it stands is better than those before it; `failed_` where the run goes back
  /// instead. Collective.
  bool worth_saving();
  /// Writes a checkpoint of the run as it stands, for which work began then, if there is none. Whether it is known to be
  /// there. Collective.
  enum class Waits : std::uint8_t { for_the_copy, to_the_end };
  bool save(Waits waits, std::chrono::steady_clock::time_point begin);
  /// The same where it is worth it. Collective.
  void save_where_it_stands();
  /// After a step: what becomes of a checkpoint that is being written, as the ranks have told each other. Collective.
  void tend_save();
  /// Waits for one that is being written. Collective.
  void finish_save();
  /// What the clock has to know of checkpoints that were begun; `took`: by the one under way or the last one.
  void tell_clock_of_save(std::chrono::duration<double> took = {});
  /// Ends the run where it stands, with a checkpoint. Collective.
  RunEnd end_early();
  /// The step of the newest checkpoint; -1: there is none. Collective.
  std::int64_t newest_checkpoint();
  /// What the run begins with. Collective.
  void begin_record();
  /// Ends a run that is recorded. Collective.
  RunEnd end_recorded();
  /// Throws Error where there is no result. Collective.
  void require_trained();
  /// Throws Error where the weights are none to be used: they are not finite, or the run ends in skipped steps, or the
  /// loss of data that it has trained on is not finite. Collective.
  void require_usable();
  void note_taken(const Issued& issued);
  /// For a run that ends in an error: keeps the states where no checkpoint holds them. The rest of its message.
  /// Collective.
  std::string rescue(RunPosition position);
  void settle();
  void settle_all();
  /// Of a step that was not taken: whether a lower loss scale is the remedy, which is then applied. Collective.
  bool lowers_loss_scale(const Issued& issued, const StepResult& result);
  /// The remedies for a step that none of the above has: ends the run, skips the step, or sets `failed_`. Collective.
  void not_finite(const Issued& issued, const StepResult& result);
  NonfiniteReport report_of(const Issued& issued, const StepResult& result);
  /// Of the states after the step, where they are to be looked at. Collective.
  void watch_states(std::int64_t step);
  /// What is not finite of the states as the last step that was read has left them. Collective.
  std::optional<NonfiniteTensors> broken_states();
  void set_failed(std::int64_t step, bool states_are_finite, std::string why);
  /// Does nothing but to pass over the step.
  void pass_over(std::int64_t step);
  /// After a failure: back to the newest checkpoint. Collective.
  void go_back();
  void stand_at(const RunPosition& position);
  /// Ends the run with an Error of `why` and what became of the states. Collective.
  [[noreturn]] void give_up(const std::string& why);
  /// Pays what is owed after a step, unless all ranks agree to stop before, or the run goes back. Collective.
  void validate();
  /// The loss, if it comes to its end. Collective.
  std::optional<double> validation_loss();
  /// Between two micro-batches of a validation: what became of a checkpoint, and whether one is due. Collective.
  void look_around();
  /// What this rank tells the others of requests, the clock and its part of a checkpoint; the first numbers of a gather.
  std::vector<double> wishes(RunClock::Next next) const;
  /// Of [ranks, wishes and more].
  void agree(const at::Tensor& told);
  /// Whether this rank tells of its tokens: one of those that have the same does.
  bool counts_tokens() const { return engine_.mesh().index(axes::tokens.others()) == 0; }
  void record(const Issued& issued, const StepResult& result);
  /// Puts figures that are complete into the records.
  void tell(const StepMetrics& metrics);

  const Config& config_;
  std::int64_t steps_;
  Engine& engine_;
  TrainingData& data_;
  Records& records_;
  MemoryTracker& tracker_;
  Checkpoints* checkpoints_;
  const StopSignal* stop_;
  RunClock* clock_;
  ScheduleOptions schedule_;
  std::optional<LossScale> loss_scale_;
  NonfiniteRule rule_;
  std::function<RunPosition()> restore_;
  StepRecorder* recorder_;
  std::optional<FirstStepDump> dump_;

  bool stop_agreed_ = false;  // a signal has reached some rank
  bool end_agreed_ = false;   // the clock's
  bool save_agreed_ = false;  // the clock's
  /// Of all ranks: failed on some, or ended on all, or neither.
  SaveProgress save_progress_ = SaveProgress::ended;
  std::chrono::duration<double> save_time_{};  // of the one that is under way, on the rank that is slowest
  std::int64_t steps_done_ = 0;
  std::deque<Issued> issued_;
  std::chrono::steady_clock::time_point begin_;  // of step 1, as if the run had never been interrupted
  double last_loss_ = 0;                         // of the last step that was not passed over
  RunPosition taken_;                            // after the last step that was taken
  std::int64_t sound_updates_ = -1;              // so many, and the states were finite
  bool passed_ = false;                          // the last step was skipped or passed over
  bool owes_save_ = false;                       // the checkpoint of such a step follows the next one that is taken
  std::optional<StepMetrics> owed_;              // of the last step, which is to be validated before they are told
  struct Failure {
    NonfiniteStep at;
    std::string why;
  };
  std::optional<Failure> failed_;  // and the run goes back
  bool resumed_ = false;
  double last_seconds_ = 0;
  std::int64_t last_tokens_ = 0;
  std::int64_t tokens_ = 0;
  std::int64_t trained_tokens_ = 0;
};

}  // namespace zero
