#pragma once
// Computations that run on one of a rank's threads, because the number of threads would change the last bits.
#include <ATen/Context.h>
#include <ATen/Parallel.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include <cstdint>
#include <optional>

/// MKL's function, if LibTorch contains MKL: limits the number of threads for the calling thread (0: no limit). Returns
/// the previous limit.
extern "C" [[gnu::weak]] int MKL_Set_Num_Threads_Local(int threads);

namespace zero {

/// While it lives, the calling thread runs everything alone. MKL has a limit of its own. On Intel processors the number
/// of threads that it might use decides its order of additions, even if it uses only one.
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

/// OneThread if LibTorch is asked for deterministic algorithms. LibTorch's own loops give other bits with other numbers
/// of threads. Sums change their order, and functions such as exp compute the end of a thread's part differently.
/// Training code that uses them needs one. Sums and products of two numbers need none.
class Undivided {
 public:
  Undivided() {
    if (at::globalContext().deterministicAlgorithms()) alone_.emplace();
  }

 private:
  std::optional<OneThread> alone_;
};

/// If LibTorch is asked for deterministic algorithms, runs f() entirely on the caller's thread, including products of
/// libraries. The caller's team has nothing else to do. Otherwise runs f(). Not for decompositions, which in MKL would
/// wait forever for the rest of a team.
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
