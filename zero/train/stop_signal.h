#pragma once
// StopSignal: SIGINT (Ctrl-C), SIGHUP (the terminal is gone), SIGTERM and SIGUSR1 as a request to stop after the step, or
// within its validation, with a checkpoint. mpirun forwards SIGUSR1 to its ranks, and none of the others.

namespace zero {

/// While one lives the first of these signals is noted; a later one ends the process as if nobody had listened. Signals
/// within a second of the first are the same request (a scheduler's and mpirun's may both arrive), a second Ctrl-C only
/// within a fifth of it. SIGINT and SIGHUP stay ignored where the process was started so (nohup). What is noted after
/// the object's end changes nothing but by SIGTERM: the process is ending. Nor does a closed pipe end it from then on,
/// behind which the log was read. One per process.
class StopSignal {
 public:
  /// `speaks`: the first signal is answered by a line on standard error at once, since the step may take long; a
  /// SIGTERM two seconds later, if the process still lives: mpirun ends the ranks of a job that failed by it.
  explicit StopSignal(bool speaks = false);
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// On this rank.
  bool requested() const;

  /// From now on the answer says that the result is being written.
  void training_is_over();
};

}  // namespace zero
