// The project's own kernels run on LibTorch's threads, which a source file has only where it is compiled with OpenMP.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "zero/optim/kernels/update_loop.h"

namespace zero {
namespace {

class Threads : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "the thread sanitizer's build has no OpenMP";
#endif
    seen().clear();
    at::set_num_threads(GetParam());
  }
  void TearDown() override { at::set_num_threads(before_); }

  static std::set<std::thread::id>& seen() {
    static std::set<std::thread::id> threads;
    return threads;
  }
  static void note() {
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    seen().insert(std::this_thread::get_id());
  }

 private:
  int before_ = at::get_num_threads();
};

TEST_P(Threads, DivideAnUpdate) {
  std::vector<float> numbers(std::size_t{1} << 20);
  OptimizerSpan span{.master = numbers.data(), .gradient = numbers.data(), .n = std::int64_t(numbers.size())};
  const ChooseLoops choose = [](Number, std::optional<Number>) -> UpdateLoops {
    return {[](const UpdatePointers<float>&, const StepFactors&, std::int64_t, bool) { note(); }, nullptr};
  };
  run_update(span, {}, choose);
  EXPECT_EQ(seen().size(), std::size_t(GetParam()));
  seen().clear();
  span.n = 32768;  // not worth the others
  run_update(span, {}, choose);
  EXPECT_EQ(seen(), std::set{std::this_thread::get_id()});
}

INSTANTIATE_TEST_SUITE_P(Numbers, Threads, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace zero
