#pragma once
// FailureReports: what ranks tell each other when a collective has failed and some may never answer again.
#include <chrono>
#include <string>
#include <vector>

namespace zero {

class FailureReports {
 public:
  virtual ~FailureReports() = default;

  /// Tells `mine` to the ranks `peers` and returns what each of them told, in their order; empty for those from whom
  /// nothing came within the time. Over as soon as all have answered. Called by the thread that makes the collectives,
  /// once.
  virtual std::vector<std::string> exchange(const std::string& mine, const std::vector<int>& peers,
                                            std::chrono::duration<double> patience) = 0;
};

}  // namespace zero
