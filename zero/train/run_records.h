#pragma once
// RunRecords: rank 0's records of a run, on disk and on standard output.
#include <memory>

#include "zero/train/metrics.h"
#include "zero/train/progress.h"

namespace zero {

/// Both members are null on the other ranks.
struct RunRecords {
  std::unique_ptr<MetricsWriter> metrics;
  std::unique_ptr<Progress> progress;

  /// Ends an unfinished progress line, so that other output can follow.
  void end_line() const {
    if (progress) progress->finish();
  }
};

}  // namespace zero
