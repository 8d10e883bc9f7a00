#include "zero/checkpoint/shard_format.h"

#include <gtest/gtest.h>

#include "base/files/durable_file.h"

namespace zero {
namespace {

const std::vector<StateSpec> three{{"master"}, {"exp_avg"}, {"exp_avg_sq"}};

TEST(ShardFormat, ChunksCoverTheSectionsInOrderWithoutGaps) {
  const ShardFormat format({{0, 100, 10000}, {1, 5, 0}, {2, 0, 1}, {3, 7, 4096}}, {three, three, three, three}, 4096);
  std::int64_t offset = 0;
  std::vector<std::int64_t> elements(4);
  for (std::int64_t i = 0; i < format.chunks(); ++i) {
    const ShardChunk chunk = format.chunk(i);
    const ShardSection& section = format.sections()[std::size_t(chunk.section)];
    EXPECT_EQ(chunk.offset, offset);
    EXPECT_EQ(chunk.begin, section.begin + elements[std::size_t(chunk.section)]);
    EXPECT_EQ(chunk.bytes % DurableFile::block, 0);
    EXPECT_GE(chunk.bytes, 3 * 4 * chunk.count);
    for (const std::int64_t element : {chunk.begin, chunk.begin + chunk.count - 1})
      EXPECT_EQ(format.chunk_of(chunk.section, element), i);
    elements[std::size_t(chunk.section)] += chunk.count;
    offset += chunk.bytes;
  }
  EXPECT_EQ(elements, (std::vector<std::int64_t>{10000, 0, 1, 4096}));
  EXPECT_EQ(format.table_offset(), offset);
  EXPECT_EQ(format.bytes(), offset + DurableFile::block);
}

TEST(ShardFormat, ARankMayHoldNothing) {
  const ShardFormat format({{0, 3, 0}}, {three}, 4096);
  EXPECT_EQ(format.chunks(), 0);
  EXPECT_EQ(format.bytes(), 0);
}

TEST(ShardFormat, StatesOfAnyTypeAndGrainStandSideBySide) {
  const std::vector<StateSpec> mixed{{"master"}, {"codes", at::kByte}, {"absmax", at::kFloat, 256}};
  const ShardFormat format({{1, 512, 5000}, {0, 0, 7}}, {{{"d", at::kDouble}}, mixed}, 4096);
  ASSERT_EQ(format.chunks(), 3);
  const ShardChunk first = format.chunk(0), rest = format.chunk(1), number = format.chunk(2);
  EXPECT_EQ(format.byte_of(first, 1, 0), 4 * 4096);
  EXPECT_EQ(format.byte_of(first, 2, 256), 5 * 4096 + 4);
  EXPECT_EQ(first.bytes, 24576);  // 5 * 4096 + 16 * 4, rounded up
  EXPECT_EQ(rest.count, 904);
  EXPECT_EQ(format.byte_of(rest, 2, 768), 5 * 904 + 3 * 4);
  EXPECT_EQ(number.bytes, 4096);
  EXPECT_EQ(format.byte_of(number, 0, 6), 48);
}

}  // namespace
}  // namespace zero
