#include "zero/checkpoint/shard_format.h"

#include <gtest/gtest.h>

#include "base/files/durable_file.h"

namespace zero {
namespace {

TEST(ShardFormat, ChunksCoverTheSectionsInOrderWithoutGaps) {
  const ShardFormat format({{0, 100, 10000}, {1, 5, 0}, {2, 0, 1}, {3, 7, 4096}}, 4096, 4);
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
  const ShardFormat format({{0, 3, 0}}, 4096, 4);
  EXPECT_EQ(format.chunks(), 0);
  EXPECT_EQ(format.bytes(), 0);
}

}  // namespace
}  // namespace zero
