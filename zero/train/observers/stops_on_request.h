#pragma once
// StopsOnRequest: ends a run with a checkpoint if a signal or the run's clock requests it.
#include "zero/train/nonfinite/sound_states.h"
#include "zero/train/observers/checkpoint_saving.h"
#include "zero/train/run_clock.h"
#include "zero/train/stop_signal.h"

namespace zero {

/// The last observer at a boundary, so that saving, validation and rollback come before a stop.
class StopsOnRequest final : public StepObserver {
 public:
  /// All of these must outlive the observer.
  struct Parts {
    const Config& config;
    StepLoop& loop;
    CheckpointSaving& saving;
    SoundStates& states;
    RunClock& clock;         // read on every rank; rank 0's clock decides
    const StopSignal* stop;  // null: signals are not handled
    bool speaks = false;     // true on rank 0
  };
  explicit StopsOnRequest(const Parts& parts) : parts_(parts) {}

  void resumed(const RunPosition&) override { resumed_ = true; }
  void run_begins() override { parts_.clock.stepped(); }
  void ask(StepRequests& mine, Pause pause) override;
  /// Throws Error if the output directory lacks space for the checkpoint. The message names the folder where the states
  /// were saved. Also throws if the states are not finite and no checkpoint exists.
  Then at_boundary() override;
  void run_ends() override;

 private:
  void end_early();

  Parts parts_;
  bool resumed_ = false;
};

}  // namespace zero
