#pragma once
// EventFiles: a run's event files for TensorBoard. Each start of the program begins a file, and so does a run that goes
// back to a checkpoint. TensorBoard reads files in the order of their names, and drops earlier records of steps that
// begin again.
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/files/file_calls.h"
#include "zero/output/sample_lines.h"
#include "zero/train/metrics.h"

namespace zero {

/// Writes each step at once, so that a run that dies keeps what it logged. If a step cannot be written (full disk),
/// logs one warning, and training continues. That step and later ones wait in memory until all can be written.
class EventFiles {
 public:
  /// Makes the folder and reads the event files of earlier starts in it. Throws Error if the folder cannot be made, and
  /// InputError if the files cannot be read.
  explicit EventFiles(std::string folder, std::shared_ptr<FileCalls> calls = std::make_shared<FileCalls>());
  EventFiles(const EventFiles&) = delete;
  EventFiles& operator=(const EventFiles&) = delete;
  ~EventFiles();

  /// The last step that the files hold for TensorBoard, or that waits; 0 if there is none.
  std::int64_t last_step() const { return last_step_; }
  /// Begins a file. Steps after `last_step` in earlier files do not count any more.
  void begin_after(std::int64_t last_step);
  /// Adds a step to the file that was begun, with the samples of its validation.
  void write(const StepMetrics& metrics, const std::vector<Sample>& samples = {});

 private:
  void read_earlier();
  /// Tries to write the waiting records.
  void flush();
  /// Opens the file if it is not open yet, and cuts off a torn record. Returns the reason for a failure, or "".
  std::string open();
  void close();

  std::string folder_;
  std::shared_ptr<FileCalls> calls_;
  std::string path_;  // of the file that was begun; its name is taken when it is opened
  int file_ = -1;
  std::int64_t size_ = 0;    // bytes of whole records
  bool torn_ = false;        // the file may hold more
  std::int64_t newest_ = 0;  // the time in the name of the newest file
  bool repeats_ = false;     // steps of earlier files may come again
  std::int64_t last_step_ = 0;
  std::string opening_;                                       // the records that the file must begin with
  std::deque<std::pair<std::int64_t, std::string>> waiting_;  // steps and their records
  bool failed_ = false;                                       // writing has failed, and a warning was logged
};

}  // namespace zero
