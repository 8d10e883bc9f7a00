#pragma once
// FailureHandling: how a backend reports the failure of a call that has already returned, and how ranks ask each other
// for the cause.
#include <exception>
#include <memory>

#include "comm/failure_reports.h"

namespace zero {

class FailureHandling {
 public:
  virtual ~FailureHandling() = default;

  /// Throws Error if an earlier call has failed.
  virtual void check() const = 0;

  /// Declares that this rank has failed. It issues no more calls, here or on communicators split from this one. The
  /// device aborts the calls in flight, so this rank does not wait for the others.
  virtual void abandon() noexcept = 0;

  /// Makes the object by which ranks exchange their last calls after a failure. Returns null if the backend cannot do
  /// so. Collective.
  virtual std::unique_ptr<FailureReports> make_reports() = 0;
};

/// For synchronous backends: a call has finished when it returns, and throws its own failure. Such a backend cannot
/// exchange reports.
class SynchronousFailures final : public FailureHandling {
 public:
  void check() const override {}
  void abandon() noexcept override {}
  std::unique_ptr<FailureReports> make_reports() override { return nullptr; }
};

/// Calls abandon() if an exception ends its scope. Make it the last member of an object. abandon() then runs before the
/// other members free their memory. Freeing memory would wait for the device.
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
