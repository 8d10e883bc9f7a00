#pragma once
// Computations that use only one of a rank's threads, because the number of threads would change the last bits.
#include <ATen/Context.h>
#include <ATen/Parallel.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include <cstdint>
#include <optional>

/// A function of MKL, null if LibTorch does not contain MKL. It limits the number of threads for the calling thread (0:
/// no limit). Returns the previous limit.
extern "C" [[gnu::weak]] int MKL_Set_Num_Threads_Local(int threads);

namespace zero {

/// While this object lives, the calling thread computes everything alone. MKL's limit is set too. On Intel processors,
/// MKL's order of additions depends on the number of threads that MKL may use, even if it uses one.
class OneThread {
 public:
  OneThread() { set(1); }
  ~OneThread() {
    set(before_);
    if (MKL_Set_Num_Threads_Local) MKL_Set_Num_Threads_Local(mkl_before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
#ifdef _OPENMP
  static void set(int threads) { omp_set_num_threads(threads); }
  int before_ = omp_get_max_threads();
#else
  static void set(int) {}
  int before_ = 1;
#endif
  int mkl_before_ = MKL_Set_Num_Threads_Local ? MKL_Set_Num_Threads_Local(1) : 0;
};

/// Acts as OneThread if LibTorch's deterministic algorithms are on. The results of LibTorch's own loops depend on the
/// number of threads. Sums change their order, and functions such as exp compute the end of a thread's range
/// differently. Training code that uses such loops needs an Undivided. Elementwise sums and products do not need one.
class Undivided {
 public:
  Undivided() {
    if (at::globalContext().deterministicAlgorithms()) alone_.emplace();
  }

 private:
  std::optional<OneThread> alone_;
};

/// Runs f(). If LibTorch's deterministic algorithms are on, everything in f() runs on the caller's thread, including
/// library products; the other threads are idle. Do not use it for decompositions: MKL would wait forever for the other
/// threads.
template <class F>
void undivided(F&& f) {
  if (!at::globalContext().deterministicAlgorithms()) return f();
  at::parallel_for(0, 2, 1, [&](std::int64_t begin, std::int64_t) {
    if (begin != 0) return;
    const OneThread alone;
    f();
  });
}

}  // namespace zero
