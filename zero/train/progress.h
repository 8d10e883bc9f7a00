#pragma once
// Progress: what rank 0 shows of a run on standard output. On a terminal one line that is rewritten; elsewhere a plain line
// per interval.
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

#include "zero/train/metrics.h"

namespace zero {

/// Columns of the terminal that standard output reaches in the end, 0 when it is none. A rank that mpirun started has a
/// pseudo terminal of mpirun's whatever becomes of the output, so there it is mpirun's own standard output that counts.
int terminal_columns();

/// "step 120/300  loss 5.1234  lr 9.8e-04  norm 0.83  18.2k tokens/s  peak 412 MiB  1:23 left".
std::string progress_line(const StepMetrics& metrics, std::int64_t total_steps, std::optional<double> seconds_left);

struct ProgressOptions {
  std::int64_t total_steps = 1;
  std::int64_t interval = 0;  // steps between plain lines; 0: some 20 lines a run. The first and the last step always show
  int columns = 0;            // of the terminal; 0: plain lines
};

class Progress {
 public:
  Progress(std::ostream& out, ProgressOptions options) : out_(out), options_(options) {}

  /// Called with every step's figures. Lines with a validation loss always show, and stay on a terminal.
  void show(const StepMetrics& metrics);

  /// Ends the line on a terminal, so that other output can follow.
  void finish();

 private:
  bool is_due(const StepMetrics& metrics) const;
  std::optional<double> seconds_left(const StepMetrics& metrics);

  std::ostream& out_;
  ProgressOptions options_;
  bool line_open_ = false;
  std::int64_t last_step_ = 0;
  double last_seconds_ = 0;
  double seconds_per_step_ = 0;  // exponential mean, so that a slow start is soon forgotten
};

}  // namespace zero
