#pragma once
// CheckpointSaving: which steps of a run are saved, what becomes of a checkpoint that is being written, and what is saved
// of a run that fails.
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
  /// All of them outlive the observer.
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

  /// Goes on with a checkpoint that is being written, or gives it up, as the ranks have told each other. Collective.
  void tend();
  /// Waits for one that is being written. Collective.
  void finish();
  /// Between the parts of a validation: saves the run as it stands where the clock has asked for it. Collective.
  void save_if_asked();
  /// Saves the run as it stands, for which work began then, and waits until that is done. Returns true if the
  /// checkpoint is there. Collective; the same on all ranks.
  bool save_to_the_end(std::chrono::steady_clock::time_point begin);
  /// For a run that ends in an error: keeps the states of `position` where no checkpoint holds them. The rest of its
  /// message. Collective.
  std::string rescue(RunPosition position);
  /// The step of the newest checkpoint; -1: there is none. Collective.
  std::int64_t newest();
  Checkpoints& checkpoints() { return parts_.checkpoints; }
  RunRecords& records() { return parts_.records; }

 private:
  /// As far as it is known before the step.
  bool saves_after(std::int64_t steps) const {
    return owes_save_ || parts_.checkpoints.due(steps, parts_.loop.steps());
  }
  /// True if the run is saved where it stands.
  bool saves() const;
  void save_where_it_stands();
  /// True if a checkpoint of the run as it stands is better than those before it; a failure where the run goes back
  /// instead. Collective.
  bool worth_saving();
  enum class Waits : std::uint8_t { for_the_copy, to_the_end };
  bool save(Waits waits, std::chrono::steady_clock::time_point begin);
  /// Tells the clock of checkpoints that were begun; `took`: by the one under way or the last one.
  void tell_clock(std::chrono::duration<double> took = {});

  Parts parts_;
  bool owes_save_ = false;  // the checkpoint of a step that was passed over follows the next one that is taken
};

}  // namespace zero
