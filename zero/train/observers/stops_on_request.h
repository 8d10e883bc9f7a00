#pragma once
// StopsOnRequest: ends a run with a checkpoint if a signal or its clock asks for it.
#include "zero/train/nonfinite/sound_states.h"
#include "zero/train/observers/checkpoint_saving.h"
#include "zero/train/run_clock.h"
#include "zero/train/stop_signal.h"

namespace zero {

/// The last observer at a boundary: saving, validating and going back come before a stop.
class StopsOnRequest final : public StepObserver {
 public:
  /// All of them outlive the observer.
  struct Parts {
    const Config& config;
    StepLoop& loop;
    CheckpointSaving& saving;
    SoundStates& states;
    RunClock& clock;         // asked on every rank; rank 0's counts
    const StopSignal* stop;  // null: no signal asks
    bool speaks = false;     // true on rank 0
  };
  explicit StopsOnRequest(const Parts& parts) : parts_(parts) {}

  void resumed(const RunPosition&) override { resumed_ = true; }
  void run_begins() override { parts_.clock.stepped(); }
  void ask(StepRequests& mine, Pause pause) override;
  /// Throws Error if the output directory has no room for the checkpoint; the message names the folder of the states.
  /// Also throws if the states are not finite and no checkpoint exists.
  Then at_boundary() override;
  void run_ends() override;

 private:
  void end_early();

  Parts parts_;
  bool resumed_ = false;
};

}  // namespace zero
