#pragma once
// metrics.jsonl: one JSON object per logged step. Only rank 0 writes it.
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files/file_calls.h"

namespace zero {

/// The metrics of one step. They are values of that step, not means over several steps.
struct StepMetrics {
  std::int64_t step = 0;  // from 1
  double loss = 0;        // mean over all trained tokens of the global batch
  double grad_norm = 0;   // global L2 norm before clipping
  double lr = 0;
  std::int64_t tokens = 0;          // input tokens so far
  std::int64_t trained_tokens = 0;  // tokens so far that counted in the loss
  double seconds = 0;               // since step 1 began
  double tokens_per_second = 0;     // rate since the previous object, without validations
  std::int64_t peak_bytes = 0;      // peak of tensors, on the rank with the most
  std::optional<double> time;       // Unix time in seconds, when the figures were known
  std::optional<double> epoch;      // passes over the training data so far
  // Rank 0's host: memory that processes can still take, memory in use, and the load average of the last minute.
  std::optional<std::int64_t> host_available_bytes, host_used_bytes;
  std::optional<double> load_average;
  std::optional<double> validation_loss;
  std::optional<std::int64_t> skipped;  // steps skipped so far, for any reason
  std::optional<double> loss_scale;     // fp16
  // Metrics that optimizers report ("d", "d_lr", "muon_matrices"), and those of the loss and its terms.
  std::vector<std::pair<std::string, double>> optimizer;
  // How the step spent its time ("step_products"), and the slowest rank's part of it ("slowest_products").
  std::vector<std::pair<std::string, double>> parts;
};

/// True for the name of a figure in StepMetrics::parts.
bool is_part(const std::string& name);

/// Returns one line without a line end: {"version": 1, "step": ...}. Numbers have enough digits to be read back
/// exactly. A number that is not finite becomes null, since JSON cannot represent it.
std::string format_metrics(const StepMetrics& metrics);
/// Parses such a line; null becomes NaN. Throws Error if the line is malformed.
StepMetrics parse_metrics(const std::string& line);

/// The numbers of such a line by their names, without version, step and time. Some may be NaN or infinite.
std::vector<std::pair<std::string, double>> figures_of(const StepMetrics& metrics);

/// Returns the step of the last object in such a file; 0 if the file is empty or missing. Throws InputError if the file
/// cannot be read.
std::int64_t last_recorded_step(const std::string& path, FileCalls& calls);

/// Writes each line at once, so that the lines of a run that crashes are kept. If a line cannot be written (full disk),
/// logs one warning, and training continues. That line and later ones wait in memory until all can be written.
class MetricsWriter {
 public:
  using Calls = std::shared_ptr<FileCalls>;
  /// Creates the file, or empties an existing one. Throws Error with the system's reason if the file cannot be opened.
  explicit MetricsWriter(const std::string& path, Calls calls = std::make_shared<FileCalls>());

  /// Continues a run after `last_step`. Cuts off objects of later steps and an incomplete last line. Removes earlier
  /// damaged lines, with a warning. Creates a missing file, with a warning. `unwritten`: lines that were still waiting
  /// when the run ended; those that the file lacks are added. If the file cannot be read, throws InputError and does
  /// not change the file.
  static MetricsWriter resume(const std::string& path, std::int64_t last_step, const std::string& unwritten = "",
                              Calls calls = std::make_shared<FileCalls>());

  MetricsWriter(MetricsWriter&& other) noexcept;
  MetricsWriter& operator=(MetricsWriter&&) = delete;
  ~MetricsWriter();

  void write(const StepMetrics& metrics) { write(metrics.step, format_metrics(metrics)); }
  /// Writes a line, an object with "step", without its end. A step may have several lines in a row.
  void write(std::int64_t step, const std::string& line);

  /// Cuts off objects after `last_step`, because the run went back to that step. If that fails, new lines wait until it
  /// succeeds.
  void cut_after(std::int64_t last_step);
  /// Syncs the lines to the disk, so that after a power loss every checkpoint has its lines. Warns once if that fails.
  void sync();
  /// Calls `each` with the lines of steps after `step`, written or waiting, in order. Throws Error if the file cannot
  /// be read.
  void visit_after(std::int64_t step, const std::function<void(const StepMetrics&)>& each) const;
  /// Checkpoints do not hold the lines that wait, so the warning at the end says that they are lost.
  void lose_waiting() { lost_ = true; }
  /// The lines that are not in the file yet.
  const std::string& waiting() const { return waiting_; }
  /// The step of the last object, written or waiting; 0 if there is none.
  std::int64_t last_step() const { return last_step_; }

  /// Updates only the file's modification time, for programs that watch it, at most once a second.
  void touch();

 private:
  /// Keeps the first `bytes` bytes of the file, which end with the object of `last_step`.
  MetricsWriter(const std::string& path, std::int64_t bytes, std::int64_t last_step, Calls calls);

  /// Tries to write the waiting lines to the file.
  void flush();
  /// Cuts off everything that does not belong in the file. Returns the reason if that fails, otherwise "".
  std::string cut();
  void warn_once(const std::string& what);

  Calls calls_;
  std::string path_;
  int file_ = -1;
  std::int64_t size_ = 0;  // bytes of complete lines
  std::int64_t last_step_ = 0;
  std::optional<std::int64_t> uncut_;  // lines after this step are still in the file and must be cut off
  std::chrono::steady_clock::time_point touched_{};
  std::string waiting_;
  bool torn_ = false;              // the file may hold more than `size_` bytes
  bool lost_ = false;              // the lines that wait at the end are lost
  bool failed_ = false;            // writing has failed, and a warning was logged
  bool unsynced_ = false;          // sync() has failed, and a warning was logged
  bool has_durable_name_ = false;  // the file's name survives a power loss
};

}  // namespace zero
