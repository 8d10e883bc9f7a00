#include "models/nn/matmul_setting.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <gtest/gtest.h>

#include "tests/unit/models/small_model.h"

namespace zero::test {
namespace {

TEST(MatmulSetting, StaysExactAndLeavesOtherDevicesAlone) {
  at::Context& context = at::globalContext();
  const auto cuda_before = context.float32Precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL);
  const auto before = context.float32Precision(at::Float32Backend::MKLDNN, at::Float32Op::MATMUL);
  const std::string line = choose_fast_matmul();
  EXPECT_EQ(choose_fast_matmul(), line);  // the same choice every time
  const at::Tensor a = random({300, 500}, 1, at::kFloat), b = random({500, 400}, 2, at::kFloat);
  EXPECT_LT(deviation(at::mm(a, b), at::mm(a.to(at::kDouble), b.to(at::kDouble))), 2e-6);
  EXPECT_EQ(context.float32Precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL), cuda_before);
  context.setFloat32Precision(at::Float32Backend::MKLDNN, at::Float32Op::MATMUL, before);
}

}  // namespace
}  // namespace zero::test
