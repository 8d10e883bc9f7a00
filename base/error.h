#pragma once
// The project's exception types, and checks that stay on in release builds. Only main() exits; libraries throw.
#include <stdexcept>
#include <string>

namespace zero {

/// Exit codes of every program; all ranks of a job end with the same one.
enum class ExitCode : int {
  ok = 0,
  failure = 1,    // anything not listed here
  bad_input = 2,  // the configuration or an input is invalid; nothing was written
  stopped = 75,   // stopped on request after a checkpoint
};

/// An error that the user can understand and fix. The message says what is wrong and where, what is allowed, and how to
/// fix it.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, ExitCode code = ExitCode::failure)
      : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

/// The configuration or an input file is invalid (exit code 2).
class InputError : public Error {
 public:
  explicit InputError(const std::string& message) : Error(message, ExitCode::bad_input) {}
};

/// A broken invariant of the project itself, never the user's fault.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Throws InternalError with the file and line, the condition and the message.
[[noreturn]] void throw_check_failed(const char* file, int line, const char* condition, const std::string& message);

}  // namespace zero

/// Checks an invariant in every build. The message is a std::string expression, evaluated on failure only.
#define ZERO_CHECK(condition, message)                                       \
  do {                                                                       \
    if (!(condition)) [[unlikely]]                                           \
      ::zero::throw_check_failed(__FILE__, __LINE__, #condition, (message)); \
  } while (false)
