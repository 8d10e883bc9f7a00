#pragma once
// NonfiniteSteps: handles steps whose loss or gradients are not finite, and rolls the run back to a checkpoint.
#include <functional>
#include <optional>
#include <string>

#include "zero/optim/loss_scale.h"
#include "zero/train/nonfinite/nonfinite_report.h"
#include "zero/train/nonfinite/nonfinite_rule.h"
#include "zero/train/nonfinite/sound_states.h"
#include "zero/train/observers/checkpoint_saving.h"
#include "zero/train/step_loop.h"

namespace zero {

/// A step whose loss or gradients are not finite is not taken. Depending on training.on_nonfinite, it ends the run
/// (Error), is skipped, or sends the run back to its newest checkpoint. In fp16 a lower loss scale is tried first. With
/// "stop" in fp16, only an overflow at the lowest loss scale ends the run.
class NonfiniteSteps final : public StepObserver {
 public:
  /// All of these must outlive the observer.
  struct Parts {
    const Config& config;
    StepLoop& loop;
    Engine& engine;
    TrainingBatches& batches;
    NonfiniteRule& rule;
    SoundStates& states;
    CheckpointSaving& saving;
    /// Loads the states of the newest checkpoint that passes verification into the engine. Throws on all ranks if there
    /// is none. Collective.
    std::function<RunPosition()> restore;
  };
  explicit NonfiniteSteps(const Parts& parts);

  void resumed(const RunPosition& position) override;
  void before_step(Step& step) override;
  void result_read(Step& step) override;
  void figures_known(Step& step) override;
  /// After a failure: rolls the run back to the newest checkpoint. Throws Error if that is not possible.
  Then at_boundary() override;
  void went_back(const RunPosition& position) override;
  /// Throws Error if the run has no usable result. That is so if no step was taken or the run ends in skipped steps. It
  /// is also so if the weights, or their loss on training data, are not finite.
  void run_ends() override;
  void add_to(RunPosition& position) const override;

 private:
  bool speaks() const { return parts_.engine.host().rank() == 0; }
  NonfiniteReport report_of(const Step& step);
  /// For a step that was not taken: lowers the loss scale and returns true if that may help. Collective.
  bool lowers_loss_scale(const Step& step);
  /// Called if a lower loss scale does not help. Ends the run, skips the step, or makes the run go back. Collective.
  void not_finite(Step& step);
  void restore_loss_scale(const RunPosition& position);
  void go_back();
  void require_usable();
  /// Ends the run with an Error that has `why` and the place of the states. Collective.
  [[noreturn]] void give_up(const std::string& why);

  Parts parts_;
  std::optional<LossScale> loss_scale_;  // in fp16 only
};

}  // namespace zero
