#pragma once
// CapturedWork: a function's GPU work, recorded once as a CUDA graph and replayed by a single call. An experiment of
// the benchmarks: it shows the cost of launching a step's kernels one by one.
#include <functional>
#include <memory>

namespace zero {

class CapturedWork {
 public:
  /// Records on the current stream, which is not the device's default one; nothing runs. `work` must have run before,
  /// so that it sets nothing up. Throws Error with the reason if it cannot be recorded, and in a build without CUDA.
  explicit CapturedWork(const std::function<void()>& work);
  ~CapturedWork();

  void replay();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace zero
