#pragma once
// StepRecorder: writes the record of a run while it trains. Every rank computes sketches of the parts that it holds.
// Rank 0 adds up the sketches and writes them. No tensor is gathered.
#include <fstream>
#include <string>
#include <vector>

#include "zero/prove/run_record.h"
#include "zero/train/training.h"

namespace zero {

struct RecordOptions {
  std::string path;         // empty: nothing is recorded
  std::int64_t steps = 0;   // the run ends after this step, whatever its length, and leaves no model
  bool checkpoint = false;  // the run leaves a checkpoint
};

class StepRecorder final : public StepObserver {
 public:
  /// Rank 0 creates or empties the file.
  StepRecorder(RecordOptions options, const ObservedRun& run);

  /// Records the states with which the run begins.
  void run_begins() override;
  void before_step(Step& step) override { step.read_at_once = true; }
  /// Records the gradients, divided by the loss scale.
  void gradients_ready(const Step& step) override;
  void figures_known(Step& step) override;
  /// Records the states after a step's update, and ends the run after its last step.
  Then at_boundary() override;

 private:
  void record_states();
  /// The part of a tensor that one rank holds.
  struct Part {
    TensorRecord record;
    std::string kind;
    AxisSet over = {};  // the axes along which ranks hold the tensor's other parts
  };
  AxisSet parts_over(const ParameterGroup& group, bool divided) const;
  void add_gradients(ParameterGroup& group, double factor, std::vector<Part>& parts) const;
  void add_states(ParameterGroup& group, std::vector<Part>& parts) const;
  void add_weights(ParameterGroup& group, std::vector<Part>& parts) const;
  /// Collective.
  void write(std::int64_t step, const std::vector<Part>& parts);
  std::vector<KindRecord> joined(const std::vector<std::string>& of_ranks) const;
  void write_line(const std::string& line);

  RecordOptions options_;
  ObservedRun run_;
  ModelStates& model_;
  bool updated_ = false;  // true if an update has followed the last record of the states
  std::ofstream file_;    // on rank 0
};

}  // namespace zero
