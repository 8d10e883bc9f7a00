#include "comm/nccl/arena_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/error.h"

namespace zero {
namespace {

TEST(ArenaMap, chunks_stand_side_by_side_at_aligned_offsets) {
  ArenaMap map(4 * 512);
  EXPECT_EQ(map.take(1), 0);
  EXPECT_EQ(map.take(513), 512);
  EXPECT_EQ(map.take(512), 3 * 512);
  EXPECT_EQ(map.take(1), -1);
  EXPECT_EQ(map.taken(), 4 * 512);
}

TEST(ArenaMap, what_was_given_back_is_taken_again_from_below) {
  ArenaMap map(4 * 512);
  for (int i = 0; i < 4; ++i) map.take(512);
  map.give_back(2 * 512);
  map.give_back(512);
  EXPECT_EQ(map.take(1024), 512) << "neighbours that are free are one chunk";
  map.give_back(512);
  EXPECT_EQ(map.take(100), 512);
  EXPECT_EQ(map.take(1024), -1);
  EXPECT_THROW(map.give_back(2 * 512), InternalError);
}

TEST(ArenaMap, nothing_takes_no_room) {
  ArenaMap map;
  EXPECT_EQ(map.take(0), 0);
  EXPECT_EQ(map.take(1), -1);
  EXPECT_EQ(map.taken(), 0);
}

TEST(ArenaMap, a_block_of_bytes_for_holds_its_pieces_in_any_order) {
  std::mt19937 random(7);
  std::vector<std::int64_t> blocks;
  for (int i = 0; i < 50; ++i) blocks.push_back(random() % 5000);
  const std::int64_t bytes = ArenaMap::bytes_for(blocks);
  for (int trial = 0; trial < 20; ++trial) {
    std::shuffle(blocks.begin(), blocks.end(), random);
    ArenaMap map(bytes), twin(bytes);
    for (std::int64_t chunk : blocks) {
      const std::int64_t offset = map.take(chunk);
      EXPECT_GE(offset, 0);
      EXPECT_EQ(offset % ArenaMap::alignment, 0);
      EXPECT_EQ(twin.take(chunk), offset) << "two ranks disagree";
    }
    EXPECT_EQ(map.taken(), bytes);
  }
}

}  // namespace
}  // namespace zero
