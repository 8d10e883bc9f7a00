// Steps of a model large enough for every kernel to be divided over threads have the same bits with any number of
// threads. LibTorch's products must have this property too. On Intel's processors they add in another order for each
// number of threads, unless they are asked not to.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/sim/every_optimizer.h"
#include "tests/sim/training_run.h"
#include "tests/unit/models/deterministic.h"

namespace zero::testing {
namespace threads_test {

RunOptions run_of(const OptimizerOptions& optimizer, at::ScalarType compute) {
  RunOptions run;
  run.config = small_config(false);
  run.config.vocab_size = 300;
  run.config.hidden_size = 256;
  run.config.intermediate_size = 352;
  run.config.num_hidden_layers = 1;
  run.config.num_attention_heads = 8;
  run.config.head_dim = 32;
  run.config.max_position_embeddings = 128;
  run.config.initializer_range = 0.05;
  run.optimizer = optimizer;
  run.lr = 0.1 * optimizer.lr;
  run.steps = 2;
  run.global_batch = 4;
  run.seq_len = 128;
  run.compute = compute;
  run.master = at::kFloat;
  return run;
}

class Threads : public ::testing::TestWithParam<int> {
 protected:
  OptimizerOptions optimizer() const { return every_optimizer()[std::size_t(GetParam())]; }
};

TEST_P(Threads, ChangeNoBitOfAStep) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer's build has no OpenMP";
#endif
#if defined(__x86_64__)
  if (optimizer().name == "muon" && __builtin_cpu_is("intel"))
    GTEST_SKIP() << "Muon multiplies by LibTorch's own products, whose bits depend on threads on this processor";
#endif
  const test::Deterministic while_tested;
  for (const at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
    RunOptions run = run_of(optimizer(), compute);
    const RunResult one = run_training(run);
    for (const int threads : {2, 3}) {
      run.threads = threads;
      const RunResult got = run_training(run);
      EXPECT_EQ(got.losses, one.losses) << compute << ", " << threads << " threads";
      EXPECT_EQ(got.norms, one.norms) << compute << ", " << threads << " threads";
      for (const auto& [name, weight] : one.weights)
        EXPECT_EQ(std::memcmp(got.weights.at(name).const_data_ptr(), weight.const_data_ptr(), weight.nbytes()), 0)
            << compute << ", " << threads << " threads: " << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Threads, ::testing::Range(0, int(every_optimizer().size())),
                         [](const auto& info) { return name_of(every_optimizer()[std::size_t(info.param)]); });

}  // namespace threads_test
}  // namespace zero::testing
