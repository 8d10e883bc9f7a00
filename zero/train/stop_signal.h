#pragma once
// StopSignal: turns SIGINT (Ctrl-C), SIGHUP (the terminal is gone), SIGTERM and SIGUSR1 into a request to stop with a
// checkpoint. The run stops after the current step, or within its validation. mpirun forwards only SIGUSR1 to its
// ranks.
#include <cstdint>

namespace zero {

/// The consequence of a request to stop: a checkpoint, which is the default; nothing, before a run's first step; or the
/// run's result.
enum class StopAnswer : std::uint8_t { checkpoint_follows, nothing_follows, result_follows };

/// While the object lives, the first of these signals is recorded, and a later one ends the process as usual. Signals
/// within a second of the first count as the same request, because the scheduler's and mpirun's signals may both
/// arrive. Repeated Ctrl-C counts as the same request only within 0.2 s. SIGINT and SIGHUP stay ignored if they were
/// ignored when the process started (nohup). The object is destroyed when the process ends. From then on SIGTERM still
/// ends the process, and the other signals are ignored. Once the object is constructed, a closed pipe behind the log no
/// longer ends the process. One object per process.
class StopSignal {
 public:
  /// `speaks`: answers the first signal with a line on standard error, because the step may take long. For SIGTERM the
  /// answer waits two seconds. mpirun also sends SIGTERM to a failed job and kills the job soon after, and a killed
  /// rank must not promise a checkpoint.
  explicit StopSignal(bool speaks = false);
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// Returns true if this rank has received a signal.
  bool requested() const;

  /// Chooses the answer to a signal from now on.
  void answer_with(StopAnswer answer);
};

}  // namespace zero
