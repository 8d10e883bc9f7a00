// Products of matrices on the CPU, compared with fp64: few rows and many, of any strides, in every type.
#include "models/ops/matrix_product.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>

#include "models/ops/head_rows.h"
#include "models/ops/kernels/tile_matrix.h"
#include "tests/unit/models/deterministic.h"
#include "tests/unit/models/small_model.h"

namespace zero::test {
namespace {

struct Shape {
  std::int64_t rows, length, columns;
};

// Few rows and many, around a kernel's sixteen numbers and four columns, and blocks that do not come out even.
constexpr Shape shapes[] = {{1, 1, 1},  {1, 16, 4}, {2, 17, 5},     {3, 100, 33},    {7, 64, 1},
                            {8, 31, 9}, {9, 31, 9}, {64, 128, 96},  {300, 5000, 3},  {5, 0, 4},
                            {0, 8, 4},  {4, 8, 0},  {3, 2048, 700}, {70, 17000, 66}, {1100, 9, 1030}};

/// Largest error against fp64. Its unit is the rounding error of the sum of the sizes of its terms.
double error(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, const at::Tensor& before) {
  if (out.numel() == 0) return 0;
  const at::Tensor wide_a = a.to(at::kDouble), wide_b = b.to(at::kDouble);
  at::Tensor want = at::mm(wide_a, wide_b), terms = at::mm(wide_a.abs(), wide_b.abs());
  if (before.defined()) want = want + before.to(at::kDouble), terms = terms + before.to(at::kDouble).abs();
  const double sum_bits = out.scalar_type() == at::kDouble ? 1e-14 : 1e-6;
  const double type_bits = out.scalar_type() == at::kBFloat16 ? 1.0 / 256
                           : out.scalar_type() == at::kHalf   ? 1.0 / 2048
                                                              : sum_bits;
  return (out.to(at::kDouble) - want).abs().div(terms * sum_bits + want.abs() * type_bits + 1e-7).max().item<double>();
}

class MatrixProduct : public ::testing::TestWithParam<at::ScalarType> {};

at::Tensor turned(const at::Tensor& x) { return x.t().contiguous().t(); }

TEST_P(MatrixProduct, IsThatOfFp64RoundedOnce) {
  for (const Shape& s : shapes) {
    const at::Tensor a = random({s.rows, s.length}, 1, GetParam()), b = random({s.length, s.columns}, 2, GetParam()),
                     before = random({s.rows, s.columns}, 3, GetParam());
    for (const at::Tensor& left : {a, turned(a)})
      for (const at::Tensor& right : {b, turned(b)}) {
        SCOPED_TRACE(::testing::Message()
                     << s.rows << " " << s.length << " " << s.columns << left.strides() << right.strides());
        EXPECT_LE(error(matrix_product(left, right), a, b, {}), 1);
        at::Tensor sum = before.clone();
        matrix_product_into(sum, left, right, true);
        EXPECT_LE(error(sum, a, b, before), 1);
      }
  }
}

// Parts of larger matrices, as adapters of fused parameters write them. The neighbouring parts stay unchanged.
TEST_P(MatrixProduct, WritesThePartItIsGivenAlone) {
  for (const std::int64_t rows : {2, 50}) {
    const at::Tensor a = random({rows, 80}, 1, GetParam()).narrow(1, 8, 40),
                     b = random({30, 90}, 2, GetParam()).narrow(1, 3, 40).t();
    at::Tensor whole = at::zeros({rows, 100}, a.options()), part = whole.narrow(1, 20, 30);
    matrix_product_into(part, a, b);
    EXPECT_LE(error(part, a, b, {}), 1);
    part.zero_();
    EXPECT_TRUE(whole.eq(0).all().item<bool>());
  }
}

// A sum of numbers of both signs in bf16 is that of fp32 rounded: one that is rounded on its way is far from it.
TEST_P(MatrixProduct, SumsAreNotRoundedOnTheirWay) {
  if (GetParam() == at::kDouble) return;
  for (const std::int64_t rows : {1, 16}) {
    const at::Tensor a = at::ones({rows, 4096}, GetParam());
    const at::Tensor b = at::full({8, 4096}, 1.0 / 4096, GetParam()).t();
    EXPECT_TRUE(matrix_product(a, b).eq(1).all().item<bool>()) << rows;
  }
}

// A token's row is independent of the rows generated with it.
TEST_P(MatrixProduct, ARowDoesNotDependOnItsFewNeighbours) {
  if (GetParam() == at::kHalf || GetParam() == at::kDouble) return;  // no kernel of few rows
  const at::Tensor a = random({8, 515}, 1, GetParam()), b = random({77, 515}, 2, GetParam()).t();
  const at::Tensor all = matrix_product(a, b);
  for (std::int64_t rows = 1; rows < 8; ++rows)
    EXPECT_TRUE(matrix_product(a.narrow(0, 8 - rows, rows), b).equal(all.narrow(0, 8 - rows, rows))) << rows;
}

TEST_P(MatrixProduct, KnowsNoThreadsWhereItIsDeterministic) {
  const Deterministic while_tested;
  // One block and many, sums long enough to be parted, and a last block of a row and a column.
  for (const auto& [rows, length, columns] : {Shape{9, 31, 9}, {64, 20000, 64}, {513, 700, 257}, {20, 4096, 300}}) {
    const at::Tensor a = random({rows, length}, 1, GetParam()), b = random({columns, length}, 2, GetParam()).t();
    const at::Tensor before = random({rows, columns}, 3, GetParam());
    for (const bool add : {false, true}) {
      at::set_num_threads(1);
      at::Tensor expected = before.clone();
      matrix_product_into(expected, a, b, add);
      EXPECT_LT(error(expected, a, b, add ? before : at::Tensor()), 1);
      for (const int threads : {2, 3}) {
        at::set_num_threads(threads);
        at::Tensor got = before.clone();
        matrix_product_into(got, a, b, add);
        EXPECT_TRUE(at::equal(got, expected))
            << rows << " x " << length << " x " << columns << ", " << threads << " threads";
        const at::Tensor turned_b = turned(b);
        matrix_product_into(got.copy_(before), turned(a), turned_b, add);
        EXPECT_LT(error(got, a, b, add ? before : at::Tensor()), 1);
      }
    }
  }
}

// Several threads divide a product into strips. The last strip is smaller, and its blocks may be larger.
TEST_P(MatrixProduct, StripsHaveTheBitsOfTheWhole) {
  if (GetParam() != at::kBFloat16 || !kernels::has_tile_products()) return;
  const Deterministic while_tested;
  const int before = at::get_num_threads();
  const auto with = [](int threads, const at::Tensor& a, const at::Tensor& b) {
    at::set_num_threads(threads);
    return matrix_product(a, b);
  };
  for (const auto& [shape, threads] : {std::pair(Shape{512, 1024, 544}, 2),
                                       {Shape{544, 1024, 512}, 2},
                                       {Shape{2100, 1024, 512}, 2},
                                       {Shape{256, 768, 2048}, 3},
                                       {Shape{1100, 768, 1024}, 3},
                                       {Shape{64, 512, 2112}, 4},
                                       {Shape{576, 1024, 768}, 5}}) {
    const at::Tensor a = random({shape.rows, shape.length}, 1, GetParam()),
                     b = random({shape.columns, shape.length}, 2, GetParam()).t();
    EXPECT_TRUE(with(1, a, b).equal(with(threads, a, b))) << shape.rows << " x " << shape.columns;
  }
  at::set_num_threads(before);
}

// A wide sum of 16-bit factors, as of a weight's gradient. Tiles do not round the product before they add it.
TEST_P(MatrixProduct, AddsToAWiderSum) {
  if (at::toOpMathType(GetParam()) == GetParam()) return;
  const bool exact = GetParam() == at::kBFloat16 && kernels::has_tile_products();
  for (const Shape& s : {Shape{70, 300, 130}, {513, 3000, 33}, {40, 64, 1}, {1, 64, 40}}) {
    const at::Tensor a = random({s.length, s.rows}, 1, GetParam()).t(),
                     b = random({s.length, s.columns}, 2, GetParam()),
                     before = random({s.rows, s.columns}, 3, at::kFloat);
    at::Tensor sum = before.clone();
    matrix_product_into(sum, a, b, true);
    const at::Tensor want = at::mm(a.to(at::kDouble), b.to(at::kDouble));
    const double bound = exact ? 1e-6 * double(s.length) : want.abs().max().item<double>() / 128;
    EXPECT_LE((sum.to(at::kDouble) - want - before).abs().max().item<double>(), bound) << s.rows << " x " << s.length;
    matrix_product_into(sum, a, b);
    EXPECT_LE((sum.to(at::kDouble) - want).abs().max().item<double>(), bound);
  }
}

// The head's gradient, of one chunk of logits after another.
TEST_P(MatrixProduct, SumsOfTheHeadKnowNoThreadsWhereTheyAreDeterministic) {
  const Deterministic while_tested;
  const at::Tensor logits = random({8192, 70}, 1, GetParam()), z = random({8192, 52}, 2, GetParam()),
                   before = random({70, 52}, 3, at::toOpMathType(GetParam()));
  at::set_num_threads(1);
  at::Tensor expected = before.clone();
  add_product_(expected, logits, z);
  for (const int threads : {2, 3}) {
    at::set_num_threads(threads);
    at::Tensor got = before.clone();
    add_product_(got, logits, z);
    EXPECT_TRUE(at::equal(got, expected)) << threads << " threads";
  }
}

// On a CPU to the bits of a copy that is added to, with the bias after it.
TEST_P(MatrixProduct, AddsAResidualAndThenABias) {
  for (const Shape& s : shapes) {
    const at::Tensor a = random({s.rows, s.length}, 1, GetParam()),
                     b = random({s.columns, s.length}, 2, GetParam()).t(),
                     residual = random({s.rows, s.columns}, 3, GetParam()), bias = random({s.columns}, 4, GetParam()),
                     before = residual.clone();
    at::Tensor sum = residual.clone(), product = matrix_product(a, b);
    matrix_product_into(sum, a, b, true);
    EXPECT_TRUE(matrix_product(a, b, residual, {}).equal(sum));
    EXPECT_TRUE(matrix_product(a, b, residual, bias).equal(sum + bias));
    EXPECT_TRUE(matrix_product(a, b, {}, bias).equal(product + bias));
    EXPECT_TRUE(matrix_product(a, b, {}, {}).equal(product));
    EXPECT_TRUE(residual.equal(before));
  }
  const at::Tensor a = random({4, 8}, 1, GetParam()), b = random({8, 6}, 2, GetParam());
  EXPECT_ANY_THROW(matrix_product(a, b, random({4, 5}, 3, GetParam()), {}));
  EXPECT_ANY_THROW(matrix_product(a, b, {}, random({4}, 3, GetParam())));
}

TEST_P(MatrixProduct, TakesNumbersThatAreNone) {
  for (const std::int64_t rows : {1, 20}) {
    at::Tensor a = at::ones({rows, 20}, GetParam()), b = at::ones({6, 20}, GetParam()).t();
    a[0][19] = NAN;
    b[3][5] = INFINITY;
    const at::Tensor y = matrix_product(a, b);
    EXPECT_TRUE(y[0].isnan().all().item<bool>());
    if (rows > 1) EXPECT_TRUE(y[1][5].isinf().item<bool>() && y[1][4].eq(20).item<bool>());
  }
}

INSTANTIATE_TEST_SUITE_P(Types, MatrixProduct, ::testing::Values(at::kFloat, at::kDouble, at::kBFloat16, at::kHalf),
                         [](const auto& info) { return std::string(at::toString(info.param)); });

}  // namespace
}  // namespace zero::test
