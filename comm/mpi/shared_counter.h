#pragma once
// A number in shared memory that one process raises and others wait for. A waiter spins briefly, then yields, then
// sleeps in the kernel (futex). Waiters therefore take no time from working ranks, even if there are more ranks than
// cores.
#include <atomic>
#include <chrono>
#include <cstdint>

namespace zero {

struct SpinLimits {
  int spins = 2000;
  int yields = 100;
};

class alignas(64) SharedCounter {
 public:
  void raise(std::uint32_t value);
  /// The counter wraps around: `target` counts as reached if it is less than 2^31 behind the counter.
  bool reached(std::uint32_t target) const {
    return static_cast<std::int32_t>(value_.load(std::memory_order_acquire) - target) >= 0;
  }
  /// Returns false if the target is not reached within `deadline`, or once `ended` is not 0. The counter is not raised
  /// after `ended` is set.
  bool wait(std::uint32_t target, const SpinLimits& limits, std::chrono::duration<double> deadline,
            const std::atomic<std::uint32_t>& ended);

 private:
  std::atomic<std::uint32_t> value_{0};
  std::atomic<std::uint32_t> sleepers_{0};
};

}  // namespace zero
