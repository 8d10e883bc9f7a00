#pragma once
// Failure reports through MPI messages. Sends do not block, so a dead or stopped rank delays the others by at most
// `patience`.
#include "comm/failure_handling.h"

namespace zero {

/// A call of this backend has finished when it returns, and throws its own failure. The ranks of the group with this
/// Fortran handle can exchange reports of at most 64 KiB each.
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
