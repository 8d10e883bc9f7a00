#include "comm/mpi/shared_counter.h"

#include <hwy/cache_control.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace zero {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "counters are shared between processes");

void SharedCounter::raise(std::uint32_t value) {
  value_.store(value, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) != 0)
    syscall(SYS_futex, &value_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool SharedCounter::wait(std::uint32_t target, const SpinLimits& limits, std::chrono::duration<double> deadline,
                         const std::atomic<std::uint32_t>& ended) {
  for (int i = 0; i < limits.spins; ++i) {
    if (reached(target)) return true;
    hwy::Pause();
  }
  for (int i = 0; i < limits.yields; ++i) {
    if (reached(target)) return true;
    sched_yield();
  }
  const auto until = std::chrono::steady_clock::now() + deadline;
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  bool done = false;
  while (true) {
    const bool over = ended.load(std::memory_order_acquire) != 0;  // before the value, which may be raised last
    const std::uint32_t seen = value_.load(std::memory_order_seq_cst);
    done = static_cast<std::int32_t>(seen - target) >= 0;
    if (done || over || std::chrono::steady_clock::now() >= until) break;
    const timespec nap{0, 20'000'000};
    syscall(SYS_futex, &value_, FUTEX_WAIT, seen, &nap, nullptr, 0);
  }
  sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  return done;
}

}  // namespace zero
