#pragma once
// Mistakes: collects the errors of several checks and reports them together, so that users can fix all at once.
#include <functional>
#include <string>
#include <vector>

namespace zero {

class Mistakes {
 public:
  /// Runs a check. False if it threw InputError, whose message is kept; other exceptions propagate.
  bool allow(const std::function<void()>& check);

  bool none() const { return messages_.empty(); }

  /// Throws one InputError if there are any: one message per line, at most ten.
  void tell() const;

 private:
  std::vector<std::string> messages_;
};

}  // namespace zero
