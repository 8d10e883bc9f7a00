#pragma once
// FailureReports: messages between ranks after a failed collective. Some ranks may never answer.
#include <chrono>
#include <string>
#include <vector>

namespace zero {

class FailureReports {
 public:
  virtual ~FailureReports() = default;

  /// Sends `mine` to the ranks `peers` and returns their answers, in their order. An answer is empty if none came in
  /// time. Returns as soon as all have answered. The thread that makes the collectives calls it, once.
  virtual std::vector<std::string> exchange(const std::string& mine, const std::vector<int>& peers,
                                            std::chrono::duration<double> patience) = 0;
};

}  // namespace zero
