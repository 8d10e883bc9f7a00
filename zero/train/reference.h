#pragma once
// Reference: the log-probabilities of a preference run's answers under the model with which the run begins. They are
// computed once, before the first step, and kept in reference.safetensors of the output directory for resumptions.
#include <cstdint>
#include <string>
#include <vector>

#include "zero/core/engine.h"
#include "zero/train/run_data.h"
#include "zero/train/stop_signal.h"

namespace zero {

class Reference {
 public:
  /// `run`: the run's id, on rank 0. The data must outlive the object.
  Reference(TrainingData& data, const Config& config, std::string run);

  /// True if no row lacks its values.
  bool is_complete() const;

  /// Reads the values that an earlier start of this run has written, as far as they fit the rows; rank 0 logs which do
  /// not. Collective.
  void read(Communicator& control);
  /// Computes the missing values by the engine's weights. Returns false if a signal stopped it. Collective.
  bool compute(Engine& engine, StopSignal& stop);
  /// Writes the file on rank 0. If that fails, logs a warning: a resumption then computes the values again. Collective.
  void write(Communicator& control) const;

 private:
  /// Reads one part. Returns why that is impossible; empty on success.
  std::string read_part(const ReferencePart& part) const;

  TrainingData& data_;
  std::string path_, run_;
};

}  // namespace zero
