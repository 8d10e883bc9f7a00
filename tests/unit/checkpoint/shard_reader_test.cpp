#include "zero/checkpoint/shard_reader.h"

#include <gmock/gmock.h>

#include <numeric>

#include "base/error.h"
#include "base/hash.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"
#include "zero/checkpoint/shard_packer.h"

namespace zero {
namespace {

// The manifest decides where a tensor begins in its group. One that began inside a block would be read past its end.
TEST(ShardReader, ReadsWholeBlocksAlone) {
  const TemporaryFolder folder;
  const std::string path = folder / "rank-00000.states";
  const ShardFormat format({{0, 0, 64}}, {{{"master"}, {"absmax", at::kFloat, 32}}}, 64);
  std::vector<float> master(64), absmax{0.5F, 0.25F};
  std::iota(master.begin(), master.end(), 0.0F);
  FileCalls calls;
  ShardWriter writer(calls, path, format);
  const HostArena chunk(1, std::size_t(format.largest_chunk_bytes()), MemoryCategory::buffers);
  ShardPacker(
      format, [&](const ShardChunk&) { return chunk.block(0); },
      [&](const ShardChunk& of, const std::byte* from) { writer.append(of, from); })
      .append({master.data(), absmax.data()}, 64);
  ShardReader reader(calls, path, format, writer.finish(), checksum);

  std::vector<float> values(31), blocks(1);
  reader.read(0, 32, 31, {values.data(), blocks.data()});
  EXPECT_EQ(values.front(), 32.0F);
  EXPECT_EQ(blocks.front(), 0.25F);
  EXPECT_THAT(message_of<Error>([&] {
                reader.read(0, 33, 31, {values.data(), blocks.data()});
              }),
              ::testing::HasSubstr("inside a block of 32"));
  reader.read(0, 33, 31, {values.data(), nullptr});  // a state without blocks
  EXPECT_EQ(values.front(), 33.0F);
}

}  // namespace
}  // namespace zero
