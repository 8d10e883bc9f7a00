#pragma once
// CheckpointSaving: chooses the steps after which a run is saved, and continues a checkpoint that is being written. It
// also saves the states of a run that fails.
#include <chrono>
#include <string>

#include "zero/train/checkpoints.h"
#include "zero/train/nonfinite/nonfinite_rule.h"
#include "zero/train/nonfinite/sound_states.h"
#include "zero/train/run_clock.h"
#include "zero/train/run_records.h"
#include "zero/train/step_loop.h"

namespace zero {

class CheckpointSaving final : public StepObserver {
 public:
  /// All of these must outlive the observer.
  struct Parts {
    const Config& config;
    StepLoop& loop;
    Communicator& host;
    Checkpoints& checkpoints;
    RunRecords& records;
    RunClock& clock;
    NonfiniteRule& rule;
    SoundStates& states;
  };
  explicit CheckpointSaving(const Parts& parts) : parts_(parts) {}

  void before_step(Step& step) override;
  void ask(StepRequests& mine, Pause pause) override;
  Then at_boundary() override;
  void went_back(const RunPosition& position) override;
  void run_ends() override { finish(); }

  /// Continues or abandons a checkpoint that is being written, depending on the progress that the ranks have reported.
  /// Collective.
  void tend();
  /// Waits for a checkpoint that is being written. Collective.
  void finish();
  /// Saves the run in its current state if the clock has requested it. Called between the parts of a validation.
  /// Collective.
  void save_if_asked();
  /// Saves the run in its current state and waits until that is done. `begin`: the time at which this work began.
  /// Returns true if the checkpoint exists. The result is the same on all ranks. Collective.
  bool save_to_the_end(std::chrono::steady_clock::time_point begin);
  /// For a run that ends in an error: saves the states of `position` if no checkpoint holds them. Returns the rest of
  /// the error's message. Collective.
  std::string rescue(RunPosition position);
  /// Returns the step of the newest checkpoint; -1 if there is none. Collective.
  std::int64_t newest();
  Checkpoints& checkpoints() { return parts_.checkpoints; }
  RunRecords& records() { return parts_.records; }

 private:
  /// Returns true if the run is saved after the step, as far as is known before it.
  bool saves_after(std::int64_t steps) const {
    return owes_save_ || parts_.checkpoints.due(steps, parts_.loop.steps());
  }
  /// Returns true if the run is saved at its current position.
  bool saves() const;
  void save_where_it_stands();
  /// Returns true if a checkpoint of the current state is better than earlier ones. Under "rollback", states that are
  /// not finite are a failure instead. Collective.
  bool worth_saving();
  enum class Waits : std::uint8_t { for_the_copy, to_the_end };
  bool save(Waits waits, std::chrono::steady_clock::time_point begin);
  /// Reports checkpoints in the background to the clock. `took`: the time of the checkpoint in progress, or of the last
  /// one.
  void tell_clock(std::chrono::duration<double> took = {});

  Parts parts_;
  bool owes_save_ = false;  // a checkpoint was due after a skipped step, and follows the next step that is taken
};

}  // namespace zero
