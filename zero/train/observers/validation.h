#pragma once
// Validation: computes the loss of the validation data after some steps of a run. It has parts, and between them the
// ranks exchange their requests.
#include <optional>

#include "zero/data/rows/loader.h"
#include "zero/train/observers/checkpoint_saving.h"

namespace zero {

/// Stands behind CheckpointSaving at a boundary: the checkpoint of a step is saved before the step's validation.
class Validation final : public StepObserver {
 public:
  /// All of them outlive the observer. `rows` null: there are no validation data, and a validation that an earlier
  /// start of the program left open is dropped.
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
  /// Returns the loss; none if the run stops or goes back before the end. Collective.
  std::optional<double> loss();
  /// Between two micro-batches: continues a checkpoint that is being written, and saves one that is due. Collective.
  void look_around();

  Parts parts_;
};

}  // namespace zero
