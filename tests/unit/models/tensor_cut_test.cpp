#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <numeric>

#include "models/tensor_spec.h"

namespace zero {
namespace {

/// The elements of a full tensor [3, 4, 6] or [5, 7] that a slice holds, in its order, taken by LibTorch.
at::Tensor sliced(const at::Tensor& full, const TensorCut& cut, int rank) {
  std::vector<at::Tensor> windows;
  for (const TensorCut::Window& window : cut.windows(rank))
    windows.push_back(full.narrow(cut.dim, window.begin, window.count));
  return at::cat(windows, cut.dim).contiguous().view(-1);
}

/// Every way to make a dimension of up to three pieces.
std::vector<std::vector<std::int64_t>> pieces_of(std::int64_t size) {
  std::vector<std::vector<std::int64_t>> all{{size}};
  for (std::int64_t a = 1; a < size; ++a) {
    all.push_back({a, size - a});
    for (std::int64_t b = 1; a + b < size; ++b) all.push_back({a, b, size - a - b});
  }
  return all;
}

class TensorCutTest : public ::testing::TestWithParam<std::vector<std::int64_t>> {
 protected:
  /// check(full tensor's values, the slice of a rank) for every dimension, every division into pieces, 1 to 5 ranks.
  template <class Check>
  void for_each_slice(const Check& check) const {
    const std::vector<std::int64_t>& full = GetParam();
    const std::int64_t numel = std::accumulate(full.begin(), full.end(), std::int64_t{1}, std::multiplies<>());
    const at::Tensor values = at::arange(numel, at::kLong).view(full);
    for (int dim = 0; dim < int(full.size()); ++dim)
      for (const auto& pieces : pieces_of(full[std::size_t(dim)]))
        for (int ranks = 2; ranks <= 5; ++ranks)
          for (int rank = 0; rank < ranks; ++rank) check(values, slice_of({"t", full}, dim, pieces, {ranks, rank}));
  }
};

TEST_P(TensorCutTest, ReadsAnyRangeOfASliceOutOfTheFullTensor) {
  for_each_slice([&](const at::Tensor& values, const TensorSpec& slice) {
    EXPECT_EQ(slice.full().shape, GetParam());
    const at::Tensor expected = sliced(values, *slice.cut, slice.cut->place.rank), flat = values.view(-1);
    ASSERT_EQ(expected.numel(), slice.numel());
    for (std::int64_t begin = 0; begin < slice.numel(); begin += 3)
      for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1}, slice.numel() - begin}) {
        const at::Tensor read = at::full({count}, -1, at::kLong);
        for_each_run(slice, begin, count, [&](std::int64_t from, std::int64_t done, std::int64_t n) {
          ASSERT_GT(n, 0);
          read.narrow(0, done, n).copy_(flat.narrow(0, from, n));
        });
        ASSERT_TRUE(at::equal(read, expected.narrow(0, begin, count)));
      }
  });
}

TEST_P(TensorCutTest, FindsAnyRangeOfTheFullTensorInTheSlices) {
  for_each_slice([&](const at::Tensor& values, const TensorSpec& slice) {
    if (slice.cut->place.rank > 0) return;  // any rank's slice says the same
    std::vector<at::Tensor> slices;
    for (int rank = 0; rank < slice.cut->place.ranks; ++rank) slices.push_back(sliced(values, *slice.cut, rank));
    for (std::int64_t begin = 0; begin < values.numel(); begin += 7) {
      const std::int64_t count = std::min<std::int64_t>(values.numel() - begin, 11);
      const at::Tensor read = at::full({count}, -1, at::kLong);
      for_each_slice_run(slice, begin, count, [&](int rank, std::int64_t from, std::int64_t done, std::int64_t n) {
        ASSERT_GT(n, 0);
        read.narrow(0, done, n).copy_(slices[std::size_t(rank)].narrow(0, from, n));
      });
      ASSERT_TRUE(at::equal(read, values.view(-1).narrow(0, begin, count)));
    }
  });
}

TEST_P(TensorCutTest, EveryElementHasOneHolder) {
  for_each_slice([&](const at::Tensor& values, const TensorSpec& slice) {
    if (slice.cut->place.rank > 0) return;
    const at::Tensor holders = at::zeros({values.numel()}, at::kLong);
    for (int rank = 0; rank < slice.cut->place.ranks; ++rank) {
      const at::Tensor held = sliced(values, *slice.cut, rank);
      EXPECT_EQ(held.numel(), slice.of_rank(rank).numel());
      holders.index_add_(0, held, at::ones_like(held));
    }
    EXPECT_TRUE(at::equal(holders, at::ones_like(holders)));
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, TensorCutTest,
                         ::testing::Values(std::vector<std::int64_t>{3, 4, 6}, std::vector<std::int64_t>{5, 7},
                                           std::vector<std::int64_t>{9}));

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

TEST(TensorCut, AnAxisOfOneRankCutsNothing) { EXPECT_FALSE(slice_of({"t", {4, 2}}, 0, {4}, {}).cut.has_value()); }

// Three ranks hold 2, 3 and 3 rows of 128 numbers. Rank 0 alone would see whole blocks of 256.
TEST(TensorCut, AllRanksAgreeOnWholeBlocks) {
  for (int rank = 0; rank < 3; ++rank) {
    const TensorSpec slice = slice_of({"t", {8, 128}}, 0, {8}, {3, rank});
    EXPECT_FALSE(is_cut_between(slice, 256)) << rank;
    EXPECT_TRUE(is_cut_between(slice, 128)) << rank;
  }
  EXPECT_TRUE(is_cut_between(slice_of({"t", {8, 128}}, 0, {8}, {2, 0}), 256));
}

}  // namespace
}  // namespace zero
