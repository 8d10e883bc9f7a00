#include "models/ops/next_token_attention.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>

namespace zero {
namespace {

struct Sizes {
  std::int64_t rows, heads, kv_heads, head_dim, length;
};

struct Problem {
  at::Tensor q, mask;
  KvCache::KeysValues kept;  // as the cache has them: with room behind the columns
  double scale;
};

Problem problem_of(const Sizes& sizes, at::ScalarType type, bool masked) {
  at::manual_seed(sizes.length);
  const auto random = [&](std::initializer_list<std::int64_t> shape) { return at::randn(shape).to(type); };
  const std::int64_t capacity = sizes.length + 5;
  Problem made;
  made.q = random({sizes.rows, 1, sizes.heads, sizes.head_dim});
  made.kept = {random({sizes.rows, sizes.kv_heads, capacity, sizes.head_dim}).narrow(2, 0, sizes.length),
               random({sizes.rows, sizes.kv_heads, capacity, sizes.head_dim}).narrow(2, 0, sizes.length)};
  made.scale = 1 / std::sqrt(double(sizes.head_dim));
  if (masked) {
    made.mask = at::rand({sizes.rows, 1, 1, sizes.length}) < 0.5;
    made.mask.select(3, sizes.length - 1).fill_(true);  // a token sees itself
  }
  return made;
}

/// The same by LibTorch in fp64.
at::Tensor expected(const Problem& problem) {
  const std::int64_t group = problem.q.size(2) / problem.kept.k.size(1);
  const auto wide = [&](const at::Tensor& x) { return x.to(at::kDouble).repeat_interleave(group, 1); };
  const at::Tensor q = problem.q.to(at::kDouble).transpose(1, 2);
  at::Tensor scores = at::matmul(q, wide(problem.kept.k).transpose(2, 3)) * problem.scale;
  if (problem.mask.defined()) scores = scores.masked_fill(problem.mask.bitwise_not(), -INFINITY);
  return at::matmul(scores.softmax(3), wide(problem.kept.v)).transpose(1, 2).reshape({q.size(0), 1, -1});
}

at::Tensor found(const Problem& problem) {
  return next_token_attention(problem.q, problem.kept, problem.mask, problem.scale);
}

TEST(NextTokenAttention, IsLibTorchsInDoublePrecision) {
  for (const Sizes& sizes : {Sizes{1, 1, 1, 8, 1}, Sizes{2, 3, 1, 20, 5}, Sizes{3, 4, 4, 64, 16},
                             Sizes{2, 9, 3, 64, 37}, Sizes{1, 7, 1, 96, 300}, Sizes{5, 8, 2, 128, 17}})
    for (const bool masked : {false, true}) {
      const Problem fp32 = problem_of(sizes, at::kFloat, masked), bf16 = problem_of(sizes, at::kBFloat16, masked);
      EXPECT_LT((found(fp32) - expected(fp32)).abs().max().item<double>(), 2e-6) << sizes.length << ' ' << masked;
      const at::Tensor rounded = expected(bf16).to(at::kBFloat16).to(at::kDouble);
      EXPECT_LT((found(bf16) - rounded).abs().max().item<double>(), 0.02) << sizes.length << ' ' << masked;
    }
}

TEST(NextTokenAttention, UnseenColumnsHaveNoEffect) {
  const Problem problem = problem_of({2, 6, 2, 32, 40}, at::kFloat, true);
  const at::Tensor before = found(problem);
  const at::Tensor unseen = problem.mask.squeeze(2).unsqueeze(3).bitwise_not();  // [rows, 1, length, 1]
  problem.kept.k.masked_fill_(unseen, NAN);
  problem.kept.v.masked_fill_(unseen, NAN);
  EXPECT_TRUE(at::equal(found(problem), before));
}

TEST(NextTokenAttention, ThreadsAndOtherRowsDoNotChangeABit) {
  const Problem problem = problem_of({8, 12, 3, 64, 500}, at::kBFloat16, true);
  const at::Tensor whole = found(problem);
  const int threads = at::get_num_threads();
  at::set_num_threads(3);
  EXPECT_TRUE(at::equal(found(problem), whole));
  at::set_num_threads(threads);
  const Problem one{problem.q.narrow(0, 5, 1),
                    problem.mask.narrow(0, 5, 1),
                    {problem.kept.k.narrow(0, 5, 1), problem.kept.v.narrow(0, 5, 1)},
                    problem.scale};
  EXPECT_TRUE(at::equal(found(one), whole.narrow(0, 5, 1)));
}

TEST(NextTokenAttention, TakesOneTokenInTypesThatHaveAKernel) {
  EXPECT_FALSE(found(problem_of({1, 2, 1, 16, 4}, at::kDouble, false)).defined());
  EXPECT_FALSE(found(problem_of({1, 2, 1, 16, 4}, at::kHalf, false)).defined());
  Problem two = problem_of({1, 2, 1, 16, 4}, at::kFloat, false);
  two.q = two.q.expand({1, 2, 2, 16});
  EXPECT_FALSE(found(two).defined());
}

}  // namespace
}  // namespace zero
