#pragma once
// TemplateError: why a template could not be read or rendered. Does not include LibTorch.
#include <cstdint>
#include <string>

#include "base/error.h"

namespace zero::jinja {

class TemplateError : public InputError {
 public:
  enum class Kind : std::uint8_t {
    syntax,   // the template cannot be read
    raised,   // raise_exception: the template rejects the conversation
    failed,   // an error in jinja2 too: an undefined value is used, or types do not match
    refused,  // a feature of jinja2 that this engine lacks
    bound,    // a limit on time, depth, output or memory
  };

  /// `message` does not contain the place. what() adds the line, counted from 1, unless it is unknown (0).
  TemplateError(Kind kind, const std::string& message, int line = 0)
      : InputError(line > 0 ? "line " + std::to_string(line) + " of the template: " + message : message),
        kind_(kind),
        message_(message),
        line_(line) {}

  Kind kind() const { return kind_; }
  const std::string& message() const { return message_; }
  int line() const { return line_; }

 private:
  Kind kind_;
  std::string message_;
  int line_;
};

/// Describes the error for the user: what happened, at which line, and why. The template's own message comes last.
inline std::string described(const TemplateError& error) {
  static constexpr const char* what[] = {"cannot be read", "refuses the conversation", "fails",
                                         "needs what is not done here", "is stopped"};
  const std::string line = error.line() > 0 ? " (line " + std::to_string(error.line()) + " of it)" : "";
  return std::string("the chat template ") + what[static_cast<int>(error.kind())] + line + ": " + error.message();
}

/// Throws for an error that Python also raises: TypeError, ValueError, UndefinedError and the like.
[[noreturn]] inline void fail(const std::string& message) { throw TemplateError(TemplateError::Kind::failed, message); }

/// Throws for a feature that this engine lacks.
[[noreturn]] inline void refuse(const std::string& message) {
  throw TemplateError(TemplateError::Kind::refused, message);
}

}  // namespace zero::jinja
