#pragma once
// Progress: the output of a run on rank 0's standard output. On a terminal it rewrites one line. Otherwise it prints a
// plain line per interval, and at least one per minute.
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

/// Returns the number of columns of the terminal that shows standard output; 0 if there is no terminal. mpirun gives
/// every rank a pseudo terminal, wherever the output goes. Under mpirun, mpirun's own standard output is therefore
/// examined.
int terminal_columns();

/// Returns "step 120/300 loss 5.1234 lr 9.80e-04 norm 0.831 18.2k tok/s tensors 412 MiB 1:23 left". Fields keep their
/// width from step to step. If `columns` is above 0, fields are dropped until the line fits: memory first, then
/// learning rate, norm, skipped steps, rate. Step, losses and the time left are dropped last.
std::string progress_line(const StepMetrics& metrics, std::int64_t total_steps, std::optional<double> seconds_left,
                          int columns = 0);

/// Returns two lines for the end of a run. The first line has steps and time of the whole run, means over this start
/// with its validations and checkpoints, and the last losses. The second line has the peak of tensors on the rank with
/// the most, and `process_bytes`, the peak of this process. If the last step was skipped, the loss shown is that of
/// `sound`, the last step with a finite loss (step 0: there was none). `before` is the last step of earlier starts
/// (step 0: this is the first start).
std::string closing_lines(const StepMetrics& last, const StepMetrics& sound, std::int64_t process_bytes,
                          const StepMetrics& before = {});

struct ProgressOptions {
  std::int64_t total_steps = 1;
  // Steps between plain lines; 0: about 20 lines per run. The first and the last step are always shown.
  std::int64_t interval = 0;
  int columns = 0;                           // of the terminal; 0: plain lines
  std::chrono::milliseconds silence{60000};  // maximum time between lines, however long steps take
  StepMetrics before = {};                   // step, seconds and tokens at the end of earlier starts
};

/// Shows steps as they end. After a minute without a line, a separate thread prints one to show that the run is alive.
/// The first step, a checkpoint or the model's final gather may take that long. On a terminal, lines of the log replace
/// the unfinished line.
class Progress {
 public:
  Progress(std::ostream& out, ProgressOptions options);
  ~Progress();

  /// Call it with every step's metrics. Lines with a validation loss are always shown, and stay on a terminal.
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
  StepMetrics last_;          // the last step that was shown or skipped; step 0: none
  StepMetrics sound_;         // the last step with a finite loss
  double shown_seconds_ = 0;  // at the last step whose line was shown
  double seconds_per_step_;   // exponential moving average, so that a slow start soon stops counting

  std::mutex mutex_;  // guards out_ and the members below
  bool line_open_ = false;
  Clock::time_point spoken_ = Clock::now(), stepped_ = spoken_;
  std::condition_variable_any over_;
  std::jthread thread_;  // the last member, since it uses all the others
};

}  // namespace zero
