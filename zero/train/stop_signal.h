#pragma once
// StopSignal: turns SIGINT (Ctrl-C), SIGHUP (the terminal is gone), SIGTERM and SIGUSR1 into a request to stop with a
// checkpoint. The run stops after the step, or within its validation. mpirun forwards only SIGUSR1 to its ranks.

namespace zero {

/// While the object lives, it notes the first of these signals. A later one ends the process as usual. Signals within a
/// second of the first count as the same request, because a scheduler's and mpirun's may both arrive. For a second
/// Ctrl-C that is a fifth of a second. SIGINT and SIGHUP stay ignored if the process was started so (nohup). After the
/// object's end only SIGTERM has an effect, because the process is ending. From the construction on, a closed pipe
/// behind the log no longer ends the process. One per process.
class StopSignal {
 public:
  /// `speaks`: answers the first signal with a line on standard error, because the step may take long. The answer is
  /// immediate, but two seconds late for SIGTERM: mpirun kills the ranks of a failed job with it.
  explicit StopSignal(bool speaks = false);
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// True if this rank has noted a signal.
  bool requested() const;

  /// Makes the answer say from now on that the result is being written.
  void training_is_over();
};

}  // namespace zero
