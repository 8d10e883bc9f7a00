#include "zero/core/buffers/flat_layout.h"

#include <gtest/gtest.h>

namespace zero {
namespace {

std::vector<std::vector<TensorSpec>> example() {
  return {{{"q", {4, 10}}, {"k", {2, 10}}, {"v", {2, 10}}}, {{"norm", {10}}}, {{"o", {10, 4}}}};
}

TEST(FlatLayout, PiecesOfOneParameterStandSideBySide) {
  const FlatLayout layout(example(), 3, 32);
  EXPECT_EQ(layout.tensors()[0].offset, 0);
  EXPECT_EQ(layout.tensors()[1].offset, 40);
  EXPECT_EQ(layout.tensors()[2].offset, 60);
  EXPECT_EQ(layout.tensors()[3].offset, 96);  // 80 rounded up to the alignment
  EXPECT_EQ(layout.tensors()[4].offset, 128);
  EXPECT_EQ(layout.parameter_offset(2), 128);
  EXPECT_EQ(layout.used_numel(), 130);
  EXPECT_EQ(layout.numel(), 192);  // 168 rounded up to 3 shards of 64
  EXPECT_EQ(layout.shard_numel(), 64);
}

TEST(FlatLayout, EveryElementLiesInExactlyOneShard) {
  for (int shards : {1, 2, 3, 4, 7, 64}) {
    const FlatLayout layout(example(), shards, 8);
    ASSERT_EQ(layout.numel() % (8 * shards), 0);
    std::vector<std::vector<int>> seen;
    for (const FlatTensor& tensor : layout.tensors()) seen.emplace_back(tensor.spec.numel(), 0);
    for (int s = 0; s < shards; ++s) {
      for (const FlatSlice& slice : layout.slices(layout.shard_begin(s), layout.shard_numel())) {
        EXPECT_LE(slice.range_begin + slice.count, layout.shard_numel());
        const FlatTensor& tensor = layout.tensors()[slice.tensor];
        EXPECT_EQ(tensor.offset + slice.tensor_begin, layout.shard_begin(s) + slice.range_begin);
        for (std::int64_t i = 0; i < slice.count; ++i) ++seen[slice.tensor][slice.tensor_begin + i];
      }
    }
    for (const auto& tensor : seen)
      for (int count : tensor) EXPECT_EQ(count, 1);
  }
}

TEST(FlatLayout, ARangeInsideOneTensor) {
  const FlatLayout layout(example(), 1, 1);
  const auto chunks = layout.slices(45, 5);
  ASSERT_EQ(chunks.size(), 1u);
  EXPECT_EQ(chunks[0].tensor, 1);
  EXPECT_EQ(chunks[0].tensor_begin, 5);
  EXPECT_EQ(chunks[0].range_begin, 0);
  EXPECT_EQ(chunks[0].count, 5);
}

}  // namespace
}  // namespace zero
