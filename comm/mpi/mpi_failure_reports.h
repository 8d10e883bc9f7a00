#pragma once
// Failure reports through MPI messages. They start without waiting, so a dead or stopped rank delays nobody beyond the
// patience.
#include "comm/failure_handling.h"

namespace zero {

/// Calls of this backend return finished and throw their own failures. Ranks of the group with this Fortran handle can
/// exchange reports. A report has at most 64 KiB.
class MpiFailures final : public FailureHandling {
 public:
  explicit MpiFailures(int handle) : handle_(handle) {}

  void check() const override {}
  void abandon() noexcept override {}
  std::unique_ptr<FailureReports> make_reports() override;

 private:
  int handle_;
};

}  // namespace zero
