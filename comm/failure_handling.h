#pragma once
// FailureHandling: what a backend does about failures that its calls themselves do not throw, since they return before
// they are done, and how ranks ask each other for the cause.
#include <exception>
#include <memory>

#include "comm/failure_reports.h"

namespace zero {

class FailureHandling {
 public:
  virtual ~FailureHandling() = default;

  /// Throws Error with what went wrong in earlier calls.
  virtual void check() const = 0;

  /// This rank has failed and will make no more calls, nor will communicators split from this one: what is under way on
  /// its device ends without the other ranks, so that nothing here waits for them.
  virtual void abandon() noexcept = 0;

  /// How ranks exchange what they last did, for after a failure; null where the backend cannot. Collective.
  virtual std::unique_ptr<FailureReports> make_reports() = 0;
};

/// Of backends whose calls return finished and throw what went wrong themselves, and that have no way for reports.
class SynchronousFailures final : public FailureHandling {
 public:
  void check() const override {}
  void abandon() noexcept override {}
  std::unique_ptr<FailureReports> make_reports() override { return nullptr; }
};

/// Abandons when an exception ends its scope. As an object's last member it does so before the others let go of memory,
/// for which a device waits until its work is done.
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
