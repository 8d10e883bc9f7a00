#pragma once
// FailureHandling: how a backend reports failures of calls that have already returned, and how ranks ask each other for
// the cause.
#include <exception>
#include <memory>

#include "comm/failure_reports.h"

namespace zero {

class FailureHandling {
 public:
  virtual ~FailureHandling() = default;

  /// Throws Error if an earlier call went wrong.
  virtual void check() const = 0;

  /// This rank has failed. It makes no more calls, nor do communicators split from this one. Its device ends the
  /// current calls without the other ranks, so nothing here waits for them.
  virtual void abandon() noexcept = 0;

  /// How ranks exchange their last calls after a failure. Null if the backend cannot. Collective.
  virtual std::unique_ptr<FailureReports> make_reports() = 0;
};

/// For backends whose calls return finished and throw their own failures, and that cannot exchange reports.
class SynchronousFailures final : public FailureHandling {
 public:
  void check() const override {}
  void abandon() noexcept override {}
  std::unique_ptr<FailureReports> make_reports() override { return nullptr; }
};

/// Abandons if an exception ends its scope. Make it the last member of an object: it then abandons before the others
/// free memory, which would wait for the device.
class AbandonOnError {
 public:
  explicit AbandonOnError(FailureHandling& failures) : failures_(failures) {}
  ~AbandonOnError() {
    if (std::uncaught_exceptions() > exceptions_) failures_.abandon();
  }
  AbandonOnError(const AbandonOnError&) = delete;
  AbandonOnError& operator=(const AbandonOnError&) = delete;

 private:
  FailureHandling& failures_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace zero
