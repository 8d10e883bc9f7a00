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

  /// True if the rows of this run have a reference.
  bool is_needed() const { return !data_.references.empty(); }

  /// Reads the values from the file of an earlier start of this run. Returns false if there are none for these rows;
  /// rank 0 logs why. Collective.
  bool read(Communicator& control);
  /// Computes the values by the engine's weights. Returns false if a signal stopped the run. Collective.
  bool compute(Engine& engine, const StopSignal& stop);
  /// Writes the file on rank 0. If that fails, logs a warning: a resumption then computes the values again.
  void write(Communicator& control) const;

 private:
  std::string read_file();  // returns why there are none; empty: all are read

  TrainingData& data_;
  std::string path_, run_;
};

}  // namespace zero
