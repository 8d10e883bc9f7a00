#pragma once
// StopSignal: SIGTERM and SIGUSR1 as a request to stop after the step, with a checkpoint. mpirun forwards SIGUSR1 to its ranks.

namespace zero {

/// While one lives the first of these signals is noted; a later one ends the process as if nobody had listened. Signals
/// within a second of the first are the same request: a scheduler's and mpirun's may both arrive. One per process.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// On this rank.
  bool requested() const;
};

}  // namespace zero
