#include "zero/config/batch_arithmetic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "zero/config/nearest_key.h"

namespace zero {
namespace {

using ::testing::HasSubstr;

Config with(std::int64_t local, std::optional<std::int64_t> global) {
  Config config;
  config.source = "c.toml";
  config.training.local_batch_size = local;
  config.training.global_batch_size = global;
  return config;
}

std::string refusal(const Config& config, int ranks) {
  try {
    validate_for(config, ranks);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(BatchArithmetic, AccumulatesWhatOnePassCannotHold) {
  const BatchArithmetic batch = BatchArithmetic::of(with(4, 32), 2);
  EXPECT_EQ(batch.accumulation, 4);
  EXPECT_EQ(batch.describe(), "global batch 32 = 2 ranks x 4 micro-batches x 4 sequences");
}

TEST(BatchArithmetic, TheGlobalBatchIsOnePassWhenAbsent) {
  const BatchArithmetic batch = BatchArithmetic::of(with(3, std::nullopt), 5);
  EXPECT_EQ(batch.global_batch_size, 15);
  EXPECT_EQ(batch.accumulation, 1);
}

TEST(BatchArithmetic, RefusalNamesNumbersThatWork) {
  EXPECT_EQ(refusal(with(3, 8), 2),
            "c.toml: [training] global_batch_size: must be a multiple of local_batch_size x ranks = 3 x 2 = 6; "
            "use global_batch_size = 6 or 12, or local_batch_size = 1, 2, 4");
  EXPECT_THAT(refusal(with(4, 5), 2), HasSubstr("use global_batch_size = 8"));
  EXPECT_THAT(refusal(with(std::int64_t{1} << 62, 5), 4), HasSubstr("too large"));
}

TEST(BatchArithmetic, OneCurveOverRanksHasTurnsOfItsOwn) {
  Config config = with(3, 24);
  config.job.reproducible = "ranks";
  EXPECT_EQ(BatchArithmetic::of(config, 8).describe(), "global batch 24 = 8 ranks x 3 micro-batches x 1 sequence");
  config.job.reproducible_rows = 2;
  EXPECT_EQ(BatchArithmetic::of(config, 4).describe(), "global batch 24 = 4 ranks x 3 micro-batches x 2 sequences");
  EXPECT_EQ(refusal(config, 8),
            "c.toml: [training] global_batch_size: must be a multiple of job.reproducible_rows x ranks = 2 x 8 = 16; "
            "use global_batch_size = 16 or 32, or job.reproducible_rows = 1, 3");
  EXPECT_EQ(refusal(config, 3),
            "c.toml: [job] reproducible: runs on 1, 2, 4, 8, ... ranks, whose sums are the same; there are 3");
  config.training.global_batch_size.reset();
  EXPECT_EQ(refusal(config, 4),
            "c.toml: [job] reproducible: needs training.global_batch_size, since without it the batch depends on the "
            "ranks");
}

TEST(BatchArithmetic, ShardDegreeDividesTheRanks) {
  Config config = with(1, std::nullopt);
  config.zero.shard_degree = 4;
  EXPECT_EQ(refusal(config, 8), "accepted");
  EXPECT_THAT(refusal(config, 6), HasSubstr("must divide the number of ranks, 6: 0 (all), 1, 2, 3, 6"));
}

TEST(NearestKey, CountsSwapsOfNeighboursOnce) {
  EXPECT_EQ(edit_distance("steps", "stpes"), 1);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

TEST(NearestKey, IsEmptyWhenNothingIsNear) {
  EXPECT_EQ(nearest_key("stpes", {"seq_len", "steps"}), "steps");
  EXPECT_EQ(nearest_key("zebra", {"seq_len", "steps"}), "");
  EXPECT_EQ(nearest_key(std::string(5000, 'a'), {"steps"}), "");
}

}  // namespace
}  // namespace zero
