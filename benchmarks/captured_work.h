#pragma once
// CapturedWork: a function's GPU work, recorded once as a CUDA graph and replayed by a single call. Benchmarks use it
// to measure the cost of launching a step's kernels one by one.
#include <functional>
#include <memory>

namespace zero {

class CapturedWork {
 public:
  /// Records `work` on the current stream, which must not be the device's default stream. No kernel runs. `work` must
  /// have run once before, so that it no longer sets anything up. Throws Error with the reason if the work cannot be
  /// recorded, and in a build without CUDA.
  explicit CapturedWork(const std::function<void()>& work);
  ~CapturedWork();

  void replay();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace zero
