#pragma once
// Mistakes: collects the errors of several checks and reports them together, so that users can fix them all at once.
#include <functional>
#include <string>
#include <vector>

namespace zero {

class Mistakes {
 public:
  /// Runs a check. Returns false if the check threw InputError, whose message is kept; other exceptions propagate.
  bool allow(const std::function<void()>& check);

  bool none() const { return messages_.empty(); }

  /// If there are mistakes, throws one InputError with one message per line, at most ten.
  void tell() const;

 private:
  std::vector<std::string> messages_;
};

}  // namespace zero
