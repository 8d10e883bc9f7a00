#include "models/nn/matmul_setting.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <tuple>

#include "models/ops/kernels/tile_matrix.h"
#include "models/ops/matrix_product.h"
#include "tests/unit/models/small_model.h"

namespace zero::test {
namespace {

/// Restores LibTorch's settings.
class PrecisionKept {
 public:
  ~PrecisionKept() {
    at::globalContext().setFloat32Precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL, cuda_);
    at::globalContext().setFloat32Precision(at::Float32Backend::MKLDNN, at::Float32Op::MATMUL, cpu_);
  }

 private:
  static at::Float32Precision now(at::Float32Backend backend) {
    return at::globalContext().float32Precision(backend, at::Float32Op::MATMUL);
  }
  at::Float32Precision cuda_ = now(at::Float32Backend::CUDA), cpu_ = now(at::Float32Backend::MKLDNN);
};

TEST(MatmulSetting, StaysExactAndLeavesOtherDevicesAlone) {
  const PrecisionKept kept;
  at::Context& context = at::globalContext();
  const auto cuda_before = context.float32Precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL);
  const std::string line = choose_matmul();
  EXPECT_EQ(choose_matmul(), line);  // the same choice every time
  const at::Tensor a = random({300, 500}, 1, at::kFloat), b = random({500, 400}, 2, at::kFloat);
  EXPECT_LT(deviation(at::mm(a, b), at::mm(a.to(at::kDouble), b.to(at::kDouble))), 2e-6);
  EXPECT_EQ(context.float32Precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL), cuda_before);
}

// The error of each precision, for products of all layouts. Without AMX the coarser ones may be exact.
TEST(MatmulSetting, LowerPrecisionsHaveTheirError) {
  const PrecisionKept kept;
  const at::Tensor a = random({300, 1500}, 1, at::kFloat), b = random({1500, 400}, 2, at::kFloat);
  const at::Tensor want = at::mm(a.to(at::kDouble), b.to(at::kDouble));
  const bool tiles = kernels::has_tile_products();
  for (const auto& [name, least, most] :
       {std::tuple("highest", 0.0, 2e-6), std::tuple("high", 1e-7, 1e-5), std::tuple("medium", 1e-4, 1e-2)}) {
    const std::string line = choose_matmul(matmul_precision_of(name));
    EXPECT_NE(line.find("fp32 matrix products: "), std::string::npos);
    for (const at::Tensor& left : {a, a.t().contiguous().t()})
      for (const at::Tensor& right : {b, b.t().contiguous().t()}) {
        const double error = deviation(matrix_product(left, right), want);
        EXPECT_LT(error, most) << name;
        EXPECT_TRUE(!tiles || error >= least) << name << ": " << error;
        at::Tensor sum = want.to(at::kFloat);
        matrix_product_into(sum, left, right, true);
        EXPECT_LT(deviation(sum, 2 * want), most) << name;
      }
  }
  EXPECT_ANY_THROW(matmul_precision_of("low"));
}

TEST(MatmulSetting, WhatIsNotFiniteStaysSo) {
  const PrecisionKept kept;
  for (const std::string name : {"highest", "high", "medium"}) {
    choose_matmul(matmul_precision_of(name));
    at::Tensor a = at::ones({64, 64});
    a[0][0] = INFINITY, a[1][0] = NAN;
    const at::Tensor y = matrix_product(a, at::ones({64, 64}));
    EXPECT_FALSE(y[0].isfinite().any().item<bool>()) << name;
    EXPECT_TRUE(name == "high" || y[0].isinf().all().item<bool>()) << name;
    EXPECT_TRUE(y[1].isnan().all().item<bool>()) << name;
    EXPECT_TRUE(y[2].eq(64).all().item<bool>()) << name;
  }
}

}  // namespace
}  // namespace zero::test
