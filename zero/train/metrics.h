#pragma once
// metrics.jsonl: one JSON object per logged step. Only rank 0 writes it.
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files/file_calls.h"

namespace zero {

/// The figures of one step: values of that step, not means.
struct StepMetrics {
  std::int64_t step = 0;  // from 1
  double loss = 0;        // mean over all trained tokens of the global batch
  double grad_norm = 0;   // global L2 norm before clipping
  double lr = 0;
  std::int64_t tokens = 0;          // input tokens so far
  std::int64_t trained_tokens = 0;  // tokens so far that the loss covered
  double seconds = 0;               // since step 1 began
  double tokens_per_second = 0;     // since the object before, of steps and not of its validation
  std::int64_t peak_bytes = 0;      // tracker, fullest rank
  std::optional<double> validation_loss;
  std::optional<std::int64_t> skipped;  // steps skipped so far, for whatever reason
  std::optional<double> loss_scale;     // fp16
  // What optimizers report ("d", "d_lr", "muon_matrices"), and the figures of the loss and its terms.
  std::vector<std::pair<std::string, double>> optimizer;
};

/// One line without its end: {"version": 1, "step": ...}. Numbers have as many digits as reading them back exactly
/// takes; one that is not finite is null, which is JSON's only way to say so.
std::string format_metrics(const StepMetrics& metrics);
/// Of such a line; what is null there is no number. Throws Error where it is none.
StepMetrics parse_metrics(const std::string& line);

/// The step of the last object in a file of them; 0: there is none, or no such file. InputError when it cannot be read.
std::int64_t last_recorded_step(const std::string& path, FileCalls& calls);

/// Writes the lines, each at once, so that a run that dies keeps what it logged. A line that cannot be written (a full
/// disk) costs one warning and waits in memory, as do those after it, until all can be; training is worth more than its
/// records.
class MetricsWriter {
 public:
  using Calls = std::shared_ptr<FileCalls>;
  /// A new file; one that exists is emptied. Throws Error with the system's reason when it cannot be opened.
  explicit MetricsWriter(const std::string& path, Calls calls = std::make_shared<FileCalls>());

  /// Continues a run after `last_step`: objects of later steps and a torn last line are cut off. Damaged lines up
  /// to it go too, with a warning. A missing file is made, with a warning. What the file lacks up to then comes from `unwritten`, lines
  /// that waited when the run ended. InputError when the file cannot be read; it is as it was then.
  static MetricsWriter resume(const std::string& path, std::int64_t last_step, const std::string& unwritten = "",
                              Calls calls = std::make_shared<FileCalls>());

  MetricsWriter(MetricsWriter&& other) noexcept;
  MetricsWriter& operator=(MetricsWriter&&) = delete;
  ~MetricsWriter();

  void write(const StepMetrics& metrics);

  /// The run goes back to where it stood after `last_step`: objects of later steps are cut off. Where they cannot be, new
  /// lines wait until they can.
  void cut_after(std::int64_t last_step);
  /// Puts the lines on the disk, so that a checkpoint is not there without them after a loss of power. Warns once when
  /// that fails.
  void sync();
  /// Lines that are not in the file.
  const std::string& waiting() const { return waiting_; }
  /// Of the last object, be it in the file or waiting; 0: there is none.
  std::int64_t last_step() const { return last_step_; }

  /// A sign of life for those who watch the file: its time changes, and nothing else. At most one a second.
  void touch();

 private:
  /// What the file has stays to the end of its first `bytes`, where the object of `last_step` ends.
  MetricsWriter(const std::string& path, std::int64_t bytes, std::int64_t last_step, Calls calls);

  /// Tries to put the waiting lines into the file.
  void flush();
  /// Cuts off what does not belong into the file. Returns why it cannot; empty: it is done.
  std::string cut();
  void warn_once(const std::string& what);

  Calls calls_;
  std::string path_;
  int file_ = -1;
  std::int64_t size_ = 0;  // bytes of whole lines
  std::int64_t last_step_ = 0;
  std::optional<std::int64_t> uncut_;  // the file still has lines after this step, which are to go
  std::chrono::steady_clock::time_point touched_{};
  std::string waiting_;
  bool torn_ = false;              // the file may hold more than `size_` bytes
  bool failed_ = false;            // and a warning has said so
  bool unsynced_ = false;          // the same of sync()
  bool has_durable_name_ = false;  // after a loss of power too
};

}  // namespace zero
