// The row kernels on every kind of processor that this machine can be: the same bits, whatever the length of a vector.
#include "models/ops/kernels/row_kernels.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/simd_targets.h"

namespace zero {
namespace {

template <class T>
constexpr at::ScalarType type_of = std::is_same_v<T, float> ? at::kFloat : at::kBFloat16;

at::Tensor draw(at::IntArrayRef sizes, std::uint64_t seed, at::ScalarType type) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randn(sizes, generator, at::kFloat).mul_(3).to(type);
}

template <class T>
T* data(const at::Tensor& t) {
  return static_cast<T*>(t.data_ptr());
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.nbytes() == b.nbytes() && std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0;
}

/// Everything that the kernels make of rows of this width, in one order.
template <class T>
std::vector<at::Tensor> results(std::int64_t width) {
  const std::int64_t rows = 3;
  const auto& kernels = kernels::row_kernels<T>();
  const at::Tensor x = draw({rows, width}, 1, type_of<T>), weight = draw({width}, 2, type_of<T>),
                   dy = draw({rows, width}, 3, type_of<T>), gate_up = draw({rows, 2 * width}, 4, type_of<T>);
  const auto like = [](const at::Tensor& t) { return at::zeros_like(t); };
  const at::Tensor y = like(x), again = like(x), dx = like(x), rstd = at::zeros({rows}), dweight = at::zeros({width});
  kernels.rms_norm({data<T>(x), data<T>(weight), data<T>(y), data<float>(rstd), rows, width}, 1e-5f);
  kernels.rms_norm_again({data<T>(x), data<T>(weight), data<T>(again), data<float>(rstd), rows, width});
  EXPECT_TRUE(same_bits(y, again));
  kernels.rms_norm_backward(
      {data<T>(dy), data<T>(x), data<T>(weight), data<float>(rstd), data<T>(dx), data<float>(dweight), rows, width});
  const at::Tensor product = like(x), dgate_up = like(gate_up);
  kernels.swiglu({data<T>(gate_up), data<T>(product), rows, width});
  kernels.swiglu_backward({data<T>(dy), data<T>(gate_up), data<T>(dgate_up), rows, width});
  const at::Tensor cos = draw({width}, 5, at::kFloat).cos(), sin = draw({width}, 5, at::kFloat).sin(),
                   turned = gate_up.clone(), back = gate_up.clone();
  kernels.rotate({data<T>(turned), data<float>(cos), data<float>(sin), rows, width}, 1);
  kernels.rotate({data<T>(back), data<float>(cos), data<float>(sin), rows, width}, -1);
  const at::Tensor logits = x.clone(), lse = at::zeros({rows});
  for (std::int64_t r = 0; r < rows; ++r) {
    const kernels::CrossEntropyRow<T> row{data<T>(logits) + r * width, width, r % width};
    data<float>(lse)[r] = kernels.log_sum_exp(row);
    kernels.cross_entropy_backward(row, data<float>(lse)[r], 0.37f);
  }
  return {y, rstd, dx, dweight, product, dgate_up, turned, back, lse, logits};
}

template <class T>
class RowKernelTargets : public ::testing::Test {};
using Types = ::testing::Types<float, kernels::Bf16>;
TYPED_TEST_SUITE(RowKernelTargets, Types);

TYPED_TEST(RowKernelTargets, GiveTheSameBits) {
  for (const std::int64_t width : {1, 2, 7, 8, 15, 16, 17, 31, 33, 288, 1003, 4096}) {
    std::vector<at::Tensor> first;
    std::string first_target;
    with_every_simd_target([&](const char* target) {
      const std::vector<at::Tensor> now = results<TypeParam>(width);
      if (first.empty()) first = now, first_target = target;
      for (std::size_t i = 0; i < now.size(); ++i)
        EXPECT_TRUE(same_bits(now[i], first[i]))
            << "result " << i << ", width " << width << ": " << target << " and " << first_target;
    });
  }
}

}  // namespace
}  // namespace zero
