#pragma once
// FailureReports: messages that ranks exchange after a failed collective. Some ranks may never answer.
#include <chrono>
#include <string>
#include <vector>

namespace zero {

class FailureReports {
 public:
  virtual ~FailureReports() = default;

  /// Sends `mine` to the ranks `peers` and returns their answers, in the order of `peers`. An answer that does not
  /// arrive within `patience` is empty. Returns as soon as all have answered. Call this once, on the thread that calls
  /// the collectives.
  virtual std::vector<std::string> exchange(const std::string& mine, const std::vector<int>& peers,
                                            std::chrono::duration<double> patience) = 0;
};

}  // namespace zero
