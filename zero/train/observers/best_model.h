#pragma once
// BestModel: follows the lowest loss of the run's validations. It writes the model, or the adapter, of that step to
// best/, and ends a run whose loss no longer falls.
#include <optional>
#include <string>

#include "zero/config/run_model.h"
#include "zero/train/observers/checkpoint_saving.h"

namespace zero {

/// Runs after Validation at a boundary. The losses are those of metrics.jsonl, which holds every validation. A loss
/// that is not finite is no lowest one.
class BestModel final : public StepObserver {
 public:
  /// All of these must outlive the observer.
  struct Parts {
    const Config& config;
    StepLoop& loop;
    Engine& engine;
    CheckpointSaving& saving;
    RunClock& clock;
    const RunModel* run;  // null: nothing is written
  };
  explicit BestModel(const Parts& parts) : parts_(parts) {}

  void resumed(const RunPosition& position) override { look_back(); }
  void went_back(const RunPosition& position) override { look_back(); }
  void run_begins() override;
  void step_finished(const Step& step) override;
  Then at_boundary() override;

 private:
  struct Lowest {
    std::int64_t step = 0;  // 0: none
    double loss = 0;
    std::int64_t since = 0;  // validations after it, or all if there is none
  };
  static void add(std::int64_t step, double loss, Lowest& lowest);
  /// Finds the lowest loss again after the run has moved to another step. Collective.
  void look_back();
  bool is_out_of_patience() const;
  /// Ends the run here. Collective.
  void end_run();
  /// Writes the model, whose validation has this loss. A folder that cannot be written is a warning, because training
  /// must not end for it. Collective.
  void write(double loss);
  std::string folder() const { return parts_.config.job.output_dir + "/best"; }

  Parts parts_;
  Lowest lowest_;
  std::optional<double> written_;  // loss of the model in best/; none: there is none
  std::optional<double> loss_;     // of a validation since the last boundary
};

}  // namespace zero
