#pragma once
// Progress: what rank 0 shows of a run on standard output. On a terminal one line that is rewritten; elsewhere a plain
// line per interval, and at least one a minute.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <thread>

#include "zero/train/metrics.h"

namespace zero {

/// Columns of the terminal that standard output reaches in the end, 0 when it is none. A rank that mpirun started has a
/// pseudo terminal of mpirun's whatever becomes of the output, so there it is mpirun's own standard output that counts.
int terminal_columns();

/// "step 120/300  loss  5.1234  lr 9.80e-04  norm 0.831   18.2k tok/s  tensors  412 MiB     1:23 left". Fields keep
/// their width from step to step. With `columns` above 0 the line leaves out fields until it is that short: memory
/// first, then learning rate, norm, skipped steps, rate; step, losses and the time left stay longest.
std::string progress_line(const StepMetrics& metrics, std::int64_t total_steps, std::optional<double> seconds_left,
                          int columns = 0);

/// Two lines for the end of a run: steps, time, means over the whole run and the last losses; then the most bytes that
/// the tensors of the fullest rank took, and `process_bytes`, the most that this process took in all. Where the last
/// step was passed over, its loss is that of `sound`, the last one with a finite loss (step 0: there was none).
std::string closing_lines(const StepMetrics& last, const StepMetrics& sound, std::int64_t process_bytes);

struct ProgressOptions {
  std::int64_t total_steps = 1;
  // steps between plain lines; 0: some 20 lines a run. The first and the last step always show
  std::int64_t interval = 0;
  int columns = 0;                           // of the terminal; 0: plain lines
  std::chrono::milliseconds silence{60000};  // the longest between lines, whatever the steps take
};

/// Shows steps as they end. A thread of its own says that the run lives where a minute brings none: while the first
/// step, a checkpoint or the model's last gather takes long. On a terminal the log's lines take the place of the open
/// one.
class Progress {
 public:
  Progress(std::ostream& out, ProgressOptions options);
  ~Progress();

  /// Called with every step's figures. Lines with a validation loss always show, and stay on a terminal.
  void show(const StepMetrics& metrics);

  /// Ends the line on a terminal, so that other output can follow.
  void finish();

  /// Shows closing_lines() of the last step, if there was one.
  void close(std::int64_t process_bytes);

 private:
  using Clock = std::chrono::steady_clock;

  bool is_due(const StepMetrics& metrics) const;
  std::optional<double> seconds_left(const StepMetrics& metrics);
  void end_line();
  std::string make_way();
  void say_that_it_lives(std::stop_token stop);

  std::ostream& out_;
  ProgressOptions options_;
  StepMetrics last_;             // of the step that was shown or passed over last; step 0: none
  StepMetrics sound_;            // of the last one with a finite loss
  double shown_seconds_ = 0;     // when a step's line was shown last
  double seconds_per_step_ = 0;  // exponential mean, so that a slow start is soon forgotten

  std::mutex mutex_;  // of out_ and what follows
  bool line_open_ = false;
  Clock::time_point spoken_ = Clock::now(), stepped_ = spoken_;
  std::condition_variable_any over_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace zero
