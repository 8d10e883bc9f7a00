#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "models/tensor_spec.h"

namespace zero {
namespace {

// Any range of any slice along any dimension is read out of the full tensor.
TEST(TensorCut, FindsTheElementsOfAnySlice) {
  const std::vector<std::int64_t> full{3, 4, 6};
  const at::Tensor values = at::arange(72, at::kLong), shaped = values.view(full);
  for (int dim = 0; dim < 3; ++dim)
    for (std::int64_t size = 1; size <= full[std::size_t(dim)]; ++size)
      for (std::int64_t first = 0; first + size <= full[std::size_t(dim)]; ++first) {
        TensorSpec spec{"t", full, TensorCut{dim, first, full[std::size_t(dim)]}};
        spec.shape[std::size_t(dim)] = size;
        EXPECT_EQ(spec.full().shape, full);
        const at::Tensor expected = shaped.narrow(dim, first, size).contiguous().view(-1);
        ASSERT_EQ(expected.numel(), spec.numel());
        for (std::int64_t begin = 0; begin < spec.numel(); begin += 5)
          for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1}, spec.numel() - begin}) {
            const at::Tensor read = at::full({count}, -1, at::kLong);
            for_each_run(spec, begin, count, [&](std::int64_t from, std::int64_t done, std::int64_t n) {
              ASSERT_GT(n, 0);
              read.narrow(0, done, n).copy_(values.narrow(0, from, n));
            });
            EXPECT_TRUE(at::equal(read, expected.narrow(0, begin, count))) << dim << " " << first << " " << begin;
          }
      }
}

TEST(TensorCut, AWholeTensorIsOneRun) {
  int runs = 0;
  for_each_run({"t", {3, 4}}, 2, 7, [&](std::int64_t from, std::int64_t done, std::int64_t n) {
    ++runs;
    EXPECT_EQ(from, 2);
    EXPECT_EQ(done, 0);
    EXPECT_EQ(n, 7);
  });
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace zero
