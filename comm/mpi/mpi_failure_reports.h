#pragma once
// Failure reports by MPI's messages: started without waiting, so that a rank that is dead or stopped delays nobody
// beyond the patience.
#include "comm/failure_handling.h"

namespace zero {

/// Calls of this backend return finished and throw their failures themselves; ranks of the group with this Fortran
/// handle can exchange reports. A rank tells at most 64 KiB.
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
