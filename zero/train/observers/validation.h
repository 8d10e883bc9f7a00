#pragma once
// Validation: computes the loss on the validation data at intervals of steps. A validation has parts, between which the
// ranks exchange their requests.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zero/data/rows/loader.h"
#include "zero/train/observers/checkpoint_saving.h"
#include "zero/train/observers/samples.h"

namespace zero {

/// Runs after CheckpointSaving at a boundary, so the checkpoint of a step is saved before the step's validation.
class Validation final : public StepObserver {
 public:
  /// All of these must outlive the observer. If `rows` is null, there are no validation data, and a validation that an
  /// earlier start of the program left unfinished is dropped.
  struct Parts {
    const Config& config;
    StepLoop& loop;
    Engine& engine;
    ValidationLoader* rows;
    ValidationLoader* mismatched;  // KTO's mismatched answers of the rows; null for other losses
    CheckpointSaving& saving;
    RunClock& clock;
    Samples* samples;  // null: none
  };
  explicit Validation(const Parts& parts) : parts_(parts) {}

  void before_step(Step& step) override;
  Then at_boundary() override;

 private:
  bool follows(std::int64_t step) const;
  struct Result {
    double loss;
    std::vector<std::pair<std::string, double>> figures;  // "validation_" and the name of the loss's metric
  };
  /// Returns none if the run stops or goes back before the validation ends. Collective.
  std::optional<Result> validate();
  /// KTO's divergence on the validation data, cut short if the run stops or goes back. None for other losses.
  /// Collective.
  std::optional<double> divergence();
  bool goes_on() const;
  /// Called between two micro-batches. Continues a checkpoint that is being written, and saves one that is due.
  /// Collective.
  void look_around();

  Parts parts_;
};

}  // namespace zero
