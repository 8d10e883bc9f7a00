#pragma once
// NonfiniteSteps: what becomes of steps whose loss or gradients are not finite, and of a run that has to go back.
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

/// A step whose loss or gradients are not finite is not taken. By training.on_nonfinite it ends the run (Error), is
/// skipped, or sends the run back to its newest checkpoint. In fp16 a lower loss scale is tried first; with "stop" the
/// loss scale alone decides.
class NonfiniteSteps final : public StepObserver {
 public:
  /// All of them outlive the observer.
  struct Parts {
    const Config& config;
    StepLoop& loop;
    Engine& engine;
    TrainingBatches& batches;
    NonfiniteRule& rule;
    SoundStates& states;
    CheckpointSaving& saving;
    /// Brings the states of the newest checkpoint that verifies into the engine; throws on all ranks where there is
    /// none. Collective.
    std::function<RunPosition()> restore;
  };
  explicit NonfiniteSteps(const Parts& parts);

  void resumed(const RunPosition& position) override;
  void before_step(Step& step) override;
  void result_read(Step& step) override;
  void figures_known(Step& step) override;
  /// After a failure: back to the newest checkpoint. Throws Error where there is no way back.
  Then at_boundary() override;
  void went_back(const RunPosition& position) override;
  /// Throws Error where there is no result: no step was taken, or the weights are none to be used, since they, the loss,
  /// or the loss of data that the run has trained on are not finite, or since the run ends in skipped steps.
  void run_ends() override;
  void add_to(RunPosition& position) const override;

 private:
  bool speaks() const { return parts_.engine.host().rank() == 0; }
  NonfiniteReport report_of(const Step& step);
  /// For a step that was not taken: true if a lower loss scale is the remedy, which is then applied. Collective.
  bool lowers_loss_scale(const Step& step);
  /// The remedies for a step that none of the above has: ends the run, skips the step, or makes the run go back.
  /// Collective.
  void not_finite(Step& step);
  void restore_loss_scale(const RunPosition& position);
  void go_back();
  void require_usable();
  /// Ends the run with an Error of `why` and what became of the states. Collective.
  [[noreturn]] void give_up(const std::string& why);

  Parts parts_;
  std::optional<LossScale> loss_scale_;  // in fp16
};

}  // namespace zero
