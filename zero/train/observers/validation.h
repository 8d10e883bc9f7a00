#pragma once
// Validation: the loss of the validation data after some steps of a run, in parts, between which the ranks hear what they
// are asked for.
#include <optional>

#include "zero/data/rows/loader.h"
#include "zero/train/observers/checkpoint_saving.h"

namespace zero {

/// Behind CheckpointSaving at a boundary: what is to be saved after a step is saved before its validation.
class Validation final : public StepObserver {
 public:
  /// All of them outlive the observer. `rows` null: there are none, and a validation that a former start of the program
  /// owes is left out.
  struct Parts {
    const Config& config;
    StepLoop& loop;
    Engine& engine;
    ValidationLoader* rows;
    CheckpointSaving& saving;
    RunClock& clock;
  };
  explicit Validation(const Parts& parts) : parts_(parts) {}

  void before_step(Step& step) override;
  Then at_boundary() override;

 private:
  bool follows(std::int64_t step) const;
  /// The loss; none where the run stops or goes back before the end. Collective.
  std::optional<double> loss();
  /// Between two micro-batches: what became of a checkpoint, and whether one is due. Collective.
  void look_around();

  Parts parts_;
};

}  // namespace zero
