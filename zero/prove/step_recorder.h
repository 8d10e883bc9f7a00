#pragma once
// StepRecorder: writes the record of a run while it trains. Every rank sketches what it holds, rank 0 adds and writes; no
// tensor is held or gathered.
#include <fstream>
#include <string>
#include <vector>

#include "zero/core/model_states.h"
#include "zero/prove/run_record.h"

namespace zero {

struct RecordOptions {
  std::string path;         // empty: nothing is recorded
  std::int64_t steps = 0;   // the run ends after this step, whatever its length, and leaves no model
  bool checkpoint = false;  // but a checkpoint
};

class StepRecorder {
 public:
  /// The model outlives it. The file is made anew, by rank 0.
  StepRecorder(RecordOptions options, ModelStates& model);

  bool ends_after(std::int64_t step) const { return step >= options_.steps; }
  bool saves() const { return options_.checkpoint; }

  /// Between the last backward of a step and its update. Gradients are divided by the loss scale. Collective.
  void gradients(std::int64_t step, double loss_scale);
  /// After a step's update, or before the first one. Collective.
  void states(std::int64_t step);
  void figures(std::int64_t step, const StepFigures& figures);

 private:
  /// Of one rank: a tensor's part that it holds.
  struct Part {
    TensorRecord record;
    std::string kind;
    bool divided = false;  // over the ranks that share one copy of the states
  };
  void add_gradients(ParameterGroup& group, double factor, std::vector<Part>& parts) const;
  void add_states(ParameterGroup& group, std::vector<Part>& parts) const;
  void add_weights(ParameterGroup& group, std::vector<Part>& parts) const;
  /// Collective.
  void write(std::int64_t step, const std::vector<Part>& parts);
  std::vector<KindRecord> joined(const std::vector<std::string>& of_ranks) const;
  void write_line(const std::string& line);

  RecordOptions options_;
  ModelStates& model_;
  std::ofstream file_;  // rank 0's
};

}  // namespace zero
