#pragma once
// Mistakes: what several checks refuse, told together, so that a user need not start once for each.
#include <functional>
#include <string>
#include <vector>

namespace zero {

class Mistakes {
 public:
  /// Runs a check; false where it threw InputError, whose message is kept. Other exceptions pass.
  bool allow(const std::function<void()>& check);

  bool none() const { return messages_.empty(); }

  /// Throws one InputError where there are any: a message a line, ten at most.
  void tell() const;

 private:
  std::vector<std::string> messages_;
};

}  // namespace zero
