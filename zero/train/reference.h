#pragma once
// Reference: the log-probabilities of a preference run's answers under the model with which the run begins. They are
// computed once, before the first step, and kept in reference.safetensors of the output directory for resumptions.
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "zero/core/engine.h"
#include "zero/train/run_clock.h"
#include "zero/train/run_data.h"
#include "zero/train/stop_signal.h"

namespace zero {

/// The run to which the values belong. Only rank 0 needs it.
struct ReferenceOwner {
  std::string run;                             // the run's id
  std::function<std::string()> mark_of_start;  // a mark of the weights with which a run begins; may take seconds
};

class Reference {
 public:
  /// Values are needed of the training rows that steps 1 to `steps` take, and of all validation rows. The data must
  /// outlive the object.
  Reference(TrainingData& data, const Config& config, std::int64_t steps, ReferenceOwner owner);

  /// True if no row that needs values lacks them.
  bool is_complete() const;

  /// Reads the values that an earlier start of this run has written, as far as they fit the rows; rank 0 logs which do
  /// not. `has_checkpoint`: the run has trained, so the file should be there. Throws InputError if values are missing
  /// and the model at the run's start is not the one that the file names. Collective.
  void read(Communicator& control, bool has_checkpoint);

  /// Computes the missing values by the engine's weights, and writes the file: at the end, every few minutes, and if a
  /// signal or the clock ends the run. Returns false in the last case. If the file cannot be written, logs a warning,
  /// or throws Error where the run ends. The output directory must be the run's own. Collective.
  bool compute(Engine& engine, StopSignal& stop, RunClock& clock);

 private:
  struct Part;
  struct Pause;

  /// Reads one part. Returns why that is impossible; empty on success.
  std::string read_part(Part& part, bool has_checkpoint);
  /// Computes the missing values of one part. Returns false if the run is to end. Collective.
  bool compute_part(Part& part, Engine& engine, const StopSignal& stop, RunClock& clock);
  /// Asks all ranks whether to go on after a batch. Collective.
  Pause look_around(Engine& engine, const StopSignal& stop, const RunClock& clock) const;
  /// Writes the file on rank 0. Returns why that failed; empty on success. Collective.
  std::string write(Communicator& control);
  const std::string& mark_of_start();
  const std::string& hash_of_rows(Part& part);
  std::int64_t missing() const;

  /// A part of the data, the rows that need values, and a hash of all rows once it is known.
  struct Part {
    const ReferencePart* data;
    std::vector<std::int64_t> needed;
    std::string hash = {};

    std::vector<std::int64_t> missing() const;
  };
  std::vector<Part> parts_;
  std::string path_;
  ReferenceOwner owner_;
  std::string mark_of_start_;                           // empty: not made yet
  std::string stored_mark_;                             // that of the file, on rank 0; empty: it holds no values
  std::chrono::steady_clock::time_point written_ = {};  // when the file was written or the computation began
};

}  // namespace zero
