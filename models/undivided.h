#pragma once
// Computations that are not divided over a rank's threads, where their number would show in the last bits.
#include <ATen/Context.h>
#include <ATen/Parallel.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include <cstdint>
#include <optional>

/// Of the MKL in LibTorch, where it has one: how many threads the calling one may take, 0: as all. Returns what it was.
extern "C" [[gnu::weak]] int MKL_Set_Num_Threads_Local(int threads);

namespace zero {

/// While it lives, the calling thread divides nothing over others. MKL is told by its own name: on processors of Intel the
/// number of threads that it might take decides in which order it adds, also where it takes one alone.
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

/// OneThread where LibTorch is asked for deterministic algorithms. Its own loops give other bits with other numbers of
/// threads: sums in their order, functions such as exp where a thread's part ends, which is computed in another way than
/// what lies before. Whoever trains through them has one; sums and products of two numbers need none.
class Undivided {
 public:
  Undivided() {
    if (at::globalContext().deterministicAlgorithms()) alone_.emplace();
  }

 private:
  std::optional<OneThread> alone_;
};

/// f() where LibTorch is asked for deterministic algorithms, on the caller's thread, with nothing in it divided over others,
/// products of libraries neither: the caller's team has nothing else to do. Else f(). Not for decompositions, which in MKL
/// wait for the rest of a team for ever.
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
