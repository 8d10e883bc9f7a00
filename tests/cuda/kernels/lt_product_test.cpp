// Matrix products on a GPU against fp64 on the CPU, and how their algorithms are chosen. Skipped without a GPU; what
// only an emulated cuBLASLt tells (tests/cuda/emulated), on others.
#include "models/ops/cuda/lt_product.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/cuda/CUDAGraph.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/ScopeExit.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/nn/linear.h"
#include "models/ops/cuda/device_setting.h"
#include "models/ops/head_rows.h"
#include "models/ops/matrix_product.h"
#include "tests/cuda/emulated/lt_counts.h"

namespace zero {
namespace {

using cuda::LtProduct;

const at::Device gpu(at::kCUDA, 0);

struct Shape {
  std::int64_t m, k, n;
};

// Around a vector's 16 bytes, one row, column or term, and none.
constexpr Shape shapes[] = {{1, 1, 1},   {1, 64, 32},  {40, 64, 1},   {40, 1, 24},
                            {17, 33, 5}, {16, 64, 24}, {130, 257, 72}};
constexpr Shape empty_shapes[] = {{0, 8, 4}, {4, 8, 0}, {4, 0, 8}};

class LtProducts : public testing::TestWithParam<at::ScalarType> {
 protected:
  void SetUp() override {
    if (at::detail::getCUDAHooks().deviceCount() == 0) GTEST_SKIP() << "no GPU";
  }
  /// Values that differ everywhere and are exact in the type, on the GPU.
  static at::Tensor values(at::IntArrayRef shape, double shift, at::ScalarType type = GetParam()) {
    const at::Tensor all = at::arange(c10::multiply_integers(shape), at::kDouble).view(shape);
    return ((all * 0.7391 + shift).sin() * 1.7).to(type).to(gpu);
  }
};

at::Tensor turned(const at::Tensor& x) { return x.t().contiguous().t(); }

/// A part of a larger matrix, which begins at no whole vector.
at::Tensor parted(const at::Tensor& x) {
  at::Tensor all = at::zeros({x.size(0) + 2, x.size(1) + 5}, x.options());
  at::Tensor part = all.narrow(0, 1, x.size(0)).narrow(1, 3, x.size(1));
  return part.copy_(x);
}

/// Largest error of out = a b + c + bias against fp64. Its unit is the error that one rounding to its type and fp32
/// sums may make.
double error(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, const at::Tensor& c = {},
             const at::Tensor& bias = {}) {
  if (out.numel() == 0) return 0;
  const auto wide = [](const at::Tensor& x) { return x.to(at::kCPU, at::kDouble); };
  at::Tensor want = at::mm(wide(a), wide(b)), terms = at::mm(wide(a).abs(), wide(b).abs());
  for (const at::Tensor& added : {c, bias})
    if (added.defined()) want = want + wide(added), terms = terms + wide(added).abs();
  const double bits = out.scalar_type() == at::kBFloat16 ? 1.0 / 256
                      : out.scalar_type() == at::kHalf   ? 1.0 / 2048
                      : out.scalar_type() == at::kDouble ? 1e-15
                                                         : 1e-7;
  const double sum_bits = out.scalar_type() == at::kDouble ? 1e-15 : 1e-6;
  return (wide(out) - want).abs().div(terms * sum_bits + want.abs() * bits + 1e-7).max().item<double>();
}

TEST_P(LtProducts, AreThoseOfFp64RoundedOnceInEveryLayout) {
  LtProduct products;
  for (const Shape& s : shapes) {
    const at::Tensor a = values({s.m, s.k}, 0), b = values({s.k, s.n}, 1), c = values({s.m, s.n}, 2) * 8;
    for (const at::Tensor& left : {a, turned(a), parted(a), turned(parted(a).t()).t()})
      for (const at::Tensor& right : {b, turned(b), parted(b)})
        for (const at::Tensor& out : {at::empty_like(c), turned(c.clone()), parted(c)}) {
          SCOPED_TRACE(testing::Message()
                       << s.m << " " << s.k << " " << s.n << left.strides() << right.strides() << out.strides());
          ASSERT_TRUE(products.multiply({out, left, right, {}, {}}));
          EXPECT_LE(error(out, a, b), 1);
          ASSERT_TRUE(products.multiply({out.copy_(c), left, right, out, {}}));
          EXPECT_LE(error(out, a, b, c), 1) << "added to";
          ASSERT_TRUE(products.multiply({out.fill_(NAN), left, right, c, {}}));
          EXPECT_LE(error(out, a, b, c), 1) << "another matrix";
        }
  }
}

TEST_P(LtProducts, OfNothingAndOfOtherTypesAreComposed) {
  LtProduct products;
  for (const Shape& s : empty_shapes) {
    const at::Tensor a = values({s.m, s.k}, 0), b = values({s.k, s.n}, 1), c = values({s.m, s.n}, 2);
    at::Tensor out = c.clone();
    EXPECT_FALSE(products.multiply({out, a, b, out, {}}));
    matrix_product_into(out, a, b, true);
    EXPECT_TRUE(at::equal(out, c));
    matrix_product_into(out, a, b);
    EXPECT_EQ(out.count_nonzero().item<std::int64_t>(), 0);
    EXPECT_TRUE(at::equal(matrix_product(a, b, c, {}), c));
  }
  const at::Tensor a = values({5, 7}, 0, at::kDouble), b = values({7, 3}, 1, at::kDouble),
                   c = values({5, 3}, 2, at::kDouble), bias = values({3}, 3, at::kDouble);
  EXPECT_FALSE(products.multiply({at::empty_like(c), a, b, {}, {}}));
  EXPECT_LE(error(matrix_product(a, b, c, bias), a, b, c, bias), 100);
  EXPECT_LE(error(matrix_product(values({5, 7}, 0), values({7, 3}, 1)), values({5, 7}, 0), values({7, 3}, 1)), 1);
}

// A result near nothing, of a sum and what is added: rounded on its way, it would be far from it.
TEST_P(LtProducts, AddResidualAndBiasBeforeTheyRound) {
  const at::Tensor a = values({34, 48}, 0), b = values({40, 48}, 1).t(), bias = values({40}, 2);
  const at::Tensor nearly = (at::mm(a.to(at::kDouble), b.to(at::kDouble)) + bias.to(at::kDouble)).neg().to(GetParam());
  for (const at::Tensor& residual : {nearly, turned(nearly), parted(nearly)}) {
    const at::Tensor before = residual.clone(), y = matrix_product(a, b, residual, bias);
    EXPECT_LE(error(y, a, b, residual, bias), 1);
    EXPECT_TRUE(at::equal(residual, before));
    EXPECT_LE(error(matrix_product(a, b, residual, {}), a, b, residual), 1);
  }
  EXPECT_LE(error(matrix_product(a, b, {}, bias), a, b, {}, bias.expand({34, 40})), 1);
  EXPECT_LE(error(matrix_product(a, b, {}, at::stack({bias, bias}, 1).select(1, 0)), a, b, {}, bias), 1);
  EXPECT_LE(error(matrix_product(a, b, {}, at::cat({bias, bias}).narrow(0, 1, 40)), a, b, {},
                  at::cat({bias, bias}).narrow(0, 1, 40)),
            1);
}

// Weight gradients: sums of 16-bit operands stay in fp32 from one to the next.
TEST_P(LtProducts, AddToSumsInFp32) {
  LtProduct products;
  const at::Tensor dy = values({96, 40}, 0), x = values({96, 24}, 1), sum = values({40, 24}, 2, at::kFloat);
  at::Tensor total = sum.clone();
  add_product_(total, dy, x);
  EXPECT_LE(error(total, dy.t(), x, sum), 1);
  add_product_(total, dy, x);
  EXPECT_LE(error(total, at::cat({dy, dy}).t(), at::cat({x, x}), sum), 1);
  at::Tensor fresh = at::empty_like(sum), other = parted(sum);
  ASSERT_TRUE(products.multiply({fresh, dy.t(), x, {}, {}}));
  EXPECT_LE(error(fresh, dy.t(), x), 1);
  ASSERT_TRUE(products.multiply({other, dy.t(), x, other, {}}));
  EXPECT_LE(error(other, dy.t(), x, sum), 1);
}

// The first of several overwrites. LibTorch computes what cuBLASLt does not take: no terms, an out that is stored in
// neither direction. There a product may be rounded before it is added.
TEST_P(LtProducts, OverwriteSumsInFp32) {
  const at::Tensor dy = values({96, 40}, 0), x = values({96, 24}, 1), sum = values({40, 24}, 2, at::kFloat);
  at::Tensor total = at::full_like(sum, NAN);
  matrix_product_into(total, dy.t(), x);
  EXPECT_LE(error(total, dy.t(), x), 1);
  matrix_product_into(total, dy.t(), x, true);
  EXPECT_LE(error(total, at::cat({dy, dy}).t(), at::cat({x, x})), 1);
  matrix_product_into(total, dy.narrow(0, 0, 0).t(), x.narrow(0, 0, 0), true);
  EXPECT_LE(error(total, at::cat({dy, dy}).t(), at::cat({x, x})), 1);
  matrix_product_into(total, dy.narrow(0, 0, 0).t(), x.narrow(0, 0, 0));
  EXPECT_EQ(total.count_nonzero().item<std::int64_t>(), 0);
  const at::Tensor all = at::full({80, 48}, NAN, sum.options());
  at::Tensor spread = all.slice(0, 0, 80, 2).slice(1, 0, 48, 2);
  matrix_product_into(spread, dy.t(), x);
  matrix_product_into(spread, dy.t(), x, true);
  const at::Tensor want = at::mm(dy.t().to(at::kCPU, at::kDouble), x.to(at::kCPU, at::kDouble)) * 2;
  const double bits = GetParam() == at::kBFloat16 ? 1.0 / 128 : GetParam() == at::kHalf ? 1.0 / 1024 : 1e-5;
  EXPECT_LT(((spread.to(at::kCPU, at::kDouble) - want).norm() / want.norm()).item<double>(), bits);
}

// Adapters of fused parameters write parts. Values next to a part stay.
TEST_P(LtProducts, WriteThePartTheyAreGivenAlone) {
  const at::Tensor a = values({20, 32}, 0), b = values({32, 16}, 1), whole = at::zeros({20, 48}, a.options());
  at::Tensor part = whole.narrow(1, 8, 16);
  for (const bool add : {false, true, true}) {
    matrix_product_into(part, a, b, add);
    const at::Tensor beside = whole.clone();
    beside.narrow(1, 8, 16).zero_();
    EXPECT_EQ(beside.count_nonzero().item<std::int64_t>(), 0);
  }
  EXPECT_LE(error(part, at::cat({a, a, a}, 1), at::cat({b, b, b})), 3) << "rounded three times";
  const at::Tensor same = a.narrow(0, 3, 1).expand({20, 32});  // a row many times over
  EXPECT_LE(error(matrix_product(same, b), same, b), 1);
}

TEST_P(LtProducts, RefuseShapesThatDoNotFit) {
  const at::Tensor a = values({4, 8}, 0), b = values({8, 6}, 1), c = values({4, 6}, 2);
  at::Tensor narrow = values({4, 5}, 3);
  EXPECT_ANY_THROW(matrix_product_into(narrow, a, b));
  EXPECT_ANY_THROW(matrix_product(a, b, narrow, {}));
  EXPECT_ANY_THROW(matrix_product(a, b, c, values({4}, 4)));
  EXPECT_ANY_THROW(matrix_product(a, b.t(), c, {}));
  EXPECT_ANY_THROW(add_product_(narrow, a.t(), b));
}

// The block's output: no copy of the residual, so that the result is all that is allocated.
TEST_P(LtProducts, OfALinearReadTheResidualWhereItLies) {
  const at::Tensor x = values({2, 16, 32}, 0), weight = values({48, 32}, 1), residual = values({2, 16, 48}, 2),
                   bias = values({48}, 3), rows = x.view({32, 32});
  const at::NoGradGuard no_grad;
  const auto allocations = [] { return c10::cuda::CUDACachingAllocator::getDeviceStats(0).allocation[0].allocated; };
  linear(LinearInput::plain(x), weight, residual, {}, bias);  // sets up
  const auto before = allocations();
  const at::Tensor y = linear(LinearInput::plain(x), weight, residual, {}, bias);
  EXPECT_EQ(allocations() - before, 1);
  EXPECT_LE(error(y.view({32, 48}), rows, weight.t(), residual.view({32, 48}), bias), 1);
}

// With a frozen weight and without, and the residual's own gradient.
TEST_P(LtProducts, OfALinearHaveItsGradients) {
  const at::Tensor x = values({2, 16, 32}, 0).requires_grad_(), weight = values({48, 32}, 1).requires_grad_(),
                   residual = values({2, 16, 48}, 2).requires_grad_(), bias = values({48}, 3).requires_grad_();
  const at::Tensor dy = values({2, 16, 48}, 4), rows = dy.view({32, 48});
  linear(LinearInput::plain(x), weight, residual, {}, bias).backward(dy);
  EXPECT_LE(error(weight.grad(), rows.t(), x.detach().view({32, 32})), 1);
  EXPECT_LE(error(x.grad().view({32, 32}), rows, weight.detach()), 1);
  EXPECT_TRUE(at::equal(residual.grad(), dy));
  EXPECT_LE(error(bias.grad().unsqueeze(1), rows.t(), at::ones({32, 1}, dy.options())), 1);
}

/// LibTorch's switch, while it lives.
class Deterministic {
 public:
  Deterministic() { at::globalContext().setDeterministicAlgorithms(true, false); }
  ~Deterministic() { at::globalContext().setDeterministicAlgorithms(false, false); }
};

/// Forbids the host to wait, while it lives.
class NoWaiting {
 public:
  NoWaiting() { forbid_waiting(true); }
  ~NoWaiting() { forbid_waiting(false); }
};

/// How an algorithm is chosen, which only the emulation tells.
class LtChoice : public LtProducts {
 protected:
  void SetUp() override {
    LtProducts::SetUp();
    if (!IsSkipped() && !zero_emulated_lt_counts) GTEST_SKIP() << "cuBLASLt is not emulated";
  }
  /// Returns the counts since the last call.
  EmulatedLtCounts since() {
    const EmulatedLtCounts now = *zero_emulated_lt_counts(), before = std::exchange(last_, now);
    return {now.searches - before.searches, now.products - before.products, now.slow - before.slow,
            now.split - before.split};
  }
  EmulatedLtCounts last_;
};

TEST_P(LtChoice, IsTimedOnceAndFallsOnTheFastest) {
  LtProduct products;
  std::set<long> split;
  for (const std::int64_t n : {16, 32, 48, 64, 80, 96, 112, 128}) {
    const at::Tensor a = values({32, 64}, 0), b = values({64, n}, 1), out = at::empty({32, n}, a.options());
    since();
    ASSERT_TRUE(products.multiply({out, a, b, {}, {}}));
    const EmulatedLtCounts first = since();
    EXPECT_EQ(first.searches, 1);
    EXPECT_EQ(first.products, 4 * 4 + 1) << "each of four algorithms for nothing and three times, then the product";
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(products.multiply({out, a, b, {}, {}}));
    const EmulatedLtCounts then = since();
    EXPECT_EQ(then.searches, 0);
    EXPECT_EQ(then.products, 3);
    EXPECT_EQ(then.slow, 0);
    split.insert(then.split);
    EXPECT_LE(error(out, a, b), 1);
  }
  EXPECT_EQ(split.size(), 2) << "the first suggestion was the fastest of all problems, or of none";
}

// A timing adds to the destination only once.
TEST_P(LtChoice, LeavesWhatIsAddedToAsItWas) {
  LtProduct products;
  const at::Tensor a = values({32, 64}, 0), b = values({64, 56}, 1), c = values({32, 56}, 2);
  const at::Tensor out = parted(c), row = out.clone();
  since();
  ASSERT_TRUE(products.multiply({out, a, b, out, {}}));
  EXPECT_LE(error(out, a, b, c), 1);
  const at::Tensor whole = c.clone();
  ASSERT_TRUE(products.multiply({whole, a, b, whole, {}}));
  EXPECT_GT(since().products, 2) << "nothing was timed";
  EXPECT_LE(error(whole, a, b, c), 1);
}

TEST_P(LtChoice, WaitsUntilTheHostMay) {
  LtProduct products;
  const at::Tensor a = values({32, 64}, 0), b = values({64, 72}, 1), out = at::empty({32, 72}, a.options());
  since();
  for (int i = 0; i < 2; ++i) {
    const NoWaiting while_tested;
    ASSERT_TRUE(products.multiply({out, a, b, {}, {}}));
  }
  const EmulatedLtCounts untimed = since();
  EXPECT_EQ(untimed.products, 2);
  EXPECT_EQ(untimed.searches, 1);
  ASSERT_TRUE(products.multiply({out, a, b, {}, {}}));
  EXPECT_EQ(since().products, 17);
  EXPECT_LE(error(out, a, b), 1);
}

TEST_P(LtChoice, IsNotMadeWhileAGraphIsCaptured) {
  LtProduct products;
  const at::Tensor a = values({32, 64}, 0), b = values({64, 88}, 1), c = values({32, 88}, 2), out = at::zeros_like(c);
  const at::Tensor other = values({64, 40}, 3), known = at::zeros({32, 40}, a.options());
  ASSERT_TRUE(products.multiply({known, a, other, {}, {}}));
  c10::cuda::CUDAStreamGuard stream(c10::cuda::getStreamFromPool());
  at::cuda::CUDAGraph graph;
  c10::cuda::device_synchronize();
  since();
  graph.capture_begin();
  EXPECT_TRUE(products.multiply({out, a, b, c, {}}));
  EXPECT_TRUE(products.multiply({known, a, other, known, {}}));
  graph.capture_end();
  EXPECT_EQ(since().products, 2);
  graph.replay();
  graph.replay();
  EXPECT_LE(error(out, a, b, c), 1);
  EXPECT_LE(error(known, at::cat({a, a, a}, 1), at::cat({other, other, other})), 3);
  ASSERT_TRUE(products.multiply({out, a, b, c, {}}));
  EXPECT_EQ(since().products, 17) << "chosen when it could be";
  c10::cuda::device_synchronize();  // the tensors are another stream's
}

TEST_P(LtChoice, OfDeterministicAlgorithmsIsTheSameEverywhere) {
  for (const std::int64_t n : {16, 32, 48, 64, 80, 96, 112, 128}) {
    const at::Tensor a = values({32, 2048}, 0), b = values({2048, n}, 1), c = values({32, n}, 2);
    std::vector<at::Tensor> results;
    for (int run = 0; run < 2; ++run) {
      LtProduct products;
      const Deterministic while_tested;
      since();
      for (int use = 0; use < 2; ++use) {
        results.push_back(c.clone());
        ASSERT_TRUE(products.multiply({results.back(), a, b, results.back(), {}}));
      }
      const EmulatedLtCounts counts = since();
      EXPECT_EQ(counts.products, 2);
      EXPECT_EQ(counts.split, 0);
    }
    for (const at::Tensor& result : results) EXPECT_TRUE(at::equal(result, results[0]));
  }
}

// A timing may take at most 64 MiB more.
TEST_P(LtChoice, OfALargeSumIsTheFirstSuggestion) {
  if (GetParam() != at::kFloat) GTEST_SKIP() << "once is enough";
  LtProduct products;
  const at::Tensor a = at::ones({4100, 8}, at::TensorOptions().device(gpu)), out = at::zeros({4100, 4096}, a.options());
  since();
  ASSERT_TRUE(products.multiply({out, a, at::ones({8, 4096}, a.options()), out, {}}));
  EXPECT_EQ(since().products, 1);
  EXPECT_EQ(out.min().item<double>(), 8);
  EXPECT_EQ(out.max().item<double>(), 8);
}

TEST_P(LtChoice, OfALargeSumIsThatOfTheProductThatOverwritesIt) {
  if (GetParam() != at::kFloat) GTEST_SKIP() << "once is enough";
  long slow = 0, slow_at_first = 0;
  for (const std::int64_t terms : {8, 16, 24, 32}) {
    const at::Tensor a = at::ones({4100, terms}, at::TensorOptions().device(gpu)),
                     b = at::ones({terms, 4096}, a.options()), out = at::zeros({4100, 4096}, a.options());
    LtProduct unknown, products;
    since();
    ASSERT_TRUE(unknown.multiply({out, a, b, out, {}}));
    slow_at_first += since().slow;
    ASSERT_TRUE(products.multiply({out, a, b, {}, {}}));
    since();
    ASSERT_TRUE(products.multiply({out, a, b, {}, {}}));
    const long overwriting = since().slow;
    ASSERT_TRUE(products.multiply({out, a, b, out, {}}));
    const EmulatedLtCounts counts = since();
    EXPECT_EQ(counts.products, 1);
    EXPECT_EQ(counts.slow, overwriting);
    EXPECT_EQ(out.min().item<double>(), double(2 * terms));
    slow += counts.slow;
  }
  EXPECT_LT(slow, slow_at_first) << "the first suggestion was the fastest of all problems";
}

TEST_P(LtChoice, OfALargeSumIsItsOwnWhereThatOfTheOverwritingProductIsRefused) {
  if (GetParam() != at::kFloat) GTEST_SKIP() << "once is enough";
  LtProduct products;
  const at::Tensor a = at::ones({4100, 8}, at::TensorOptions().device(gpu)), b = at::ones({8, 4096}, a.options()),
                   out = at::zeros({4100, 4096}, a.options());
  ASSERT_TRUE(products.multiply({out, a, b, {}, {}}));
  zero_emulated_lt_refuse_fastest_sum(true);
  const auto restore = c10::make_scope_exit([] { zero_emulated_lt_refuse_fastest_sum(false); });
  since();
  for (int use = 1; use <= 2; ++use) {
    ASSERT_TRUE(products.multiply({out, a, b, out, {}}));
    EXPECT_EQ(out.min().item<double>(), 8 * (use + 1));
    EXPECT_EQ(out.max().item<double>(), 8 * (use + 1));
  }
  EXPECT_EQ(since().products, 2);
}

const auto name = [](const auto& info) { return at::toString(info.param); };
INSTANTIATE_TEST_SUITE_P(Types, LtProducts, testing::Values(at::kFloat, at::kBFloat16, at::kHalf), name);
INSTANTIATE_TEST_SUITE_P(Types, LtChoice, testing::Values(at::kFloat, at::kBFloat16, at::kHalf), name);

}  // namespace
}  // namespace zero
