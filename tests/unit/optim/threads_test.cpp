// The project's own kernels run on LibTorch's threads, which a source file has only where it is compiled with OpenMP.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "zero/optim/rules/elementwise.h"

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
  class Noting final : public ElementwiseOptimizer {
    using ElementwiseOptimizer::ElementwiseOptimizer;
    UpdateLoop loop(const UpdateSpan&) const override {
      return [](const UpdateSpan&, const StepFactors&, std::int64_t, std::int64_t, bool) { note(); };
    }
    void update_composed(const UpdateSpan&, const UpdateContext&) const override {}
  };
  const Noting optimizer{OptimizerOptions()};
  const at::Tensor numbers = at::zeros({std::int64_t{1} << 20});
  optimizer.update({numbers, {}, numbers, {}}, {});
  EXPECT_EQ(seen().size(), std::size_t(GetParam()));
  seen().clear();
  const at::Tensor few = numbers.narrow(0, 0, update_grain);  // not worth the others
  optimizer.update({few, {}, few, {}}, {});
  EXPECT_EQ(seen(), std::set{std::this_thread::get_id()});
}

INSTANTIATE_TEST_SUITE_P(Numbers, Threads, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace zero
