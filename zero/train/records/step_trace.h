#pragma once
// StepTrace: the slices of some steps of all ranks in one file, written by rank 0. Rank 0 holds one rank's events in
// memory at a time.
#include <cstdint>
#include <memory>
#include <string>

#include "base/activity_clock.h"
#include "base/files/new_file.h"
#include "comm/communicator.h"

namespace zero {

class StepTrace {
 public:
  static constexpr std::size_t most_slices = 1 << 16;  // of a rank's step

  /// `folder`: of the file, used by rank 0. It is made for the first step. `ranks` must outlive the object.
  StepTrace(std::string folder, Communicator& ranks, std::shared_ptr<FileCalls> calls = std::make_shared<FileCalls>());
  /// Publishes the file if close() did not.
  ~StepTrace();
  StepTrace(const StepTrace&) = delete;
  StepTrace& operator=(const StepTrace&) = delete;

  /// Adds a step, from 1, that the clock has measured. If the file cannot be written, rank 0 logs a warning, and the
  /// trace ends. Collective.
  void add(std::int64_t step, const ActivityClock& clock);
  /// Completes the file under its name, on rank 0. Logs the file's path, or a warning.
  void close();

 private:
  void begin(std::int64_t step, std::int64_t origin);
  void receive(int rank);
  void write(const std::string& events);
  /// Calls `work`. If `work` throws, the file is abandoned.
  template <class Work>
  void attempt(const Work& work);

  std::string folder_;
  Communicator& ranks_;
  std::shared_ptr<FileCalls> calls_;
  std::unique_ptr<NewFile> file_;  // rank 0's, while it is written
  std::string path_;               // of the file when it is complete
  bool failed_ = false, begun_ = false;
  bool some_ = false;        // the file holds an event
  std::int64_t origin_ = 0;  // time 0 of the trace, on rank 0's clock
};

/// Returns the nanoseconds to add to this rank's monotonic clock, so that it agrees with rank 0's. Returns 0 if the
/// clocks agree within the time that a message takes, as on one node. Collective.
std::int64_t clock_shift(Communicator& ranks);

}  // namespace zero
