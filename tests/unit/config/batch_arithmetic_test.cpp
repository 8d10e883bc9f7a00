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

TEST(BatchArithmetic, RefusalNamesTheRule) {
  EXPECT_EQ(refusal(with(3, 8), 2),
            "c.toml: [training] global_batch_size: must be a multiple of local_batch_size x ranks = 3 x 2 = 6");
  EXPECT_THAT(refusal(with(std::int64_t{1} << 62, 5), 4), HasSubstr("too large"));
}

TEST(BatchArithmetic, OneCurveOverRanksHasTurnsOfItsOwn) {
  Config config = with(3, 24);
  config.job.reproducible = "ranks";
  EXPECT_EQ(BatchArithmetic::of(config, 8).describe(), "global batch 24 = 8 ranks x 3 micro-batches x 1 sequence");
  config.job.reproducible_rows = 2;
  EXPECT_EQ(BatchArithmetic::of(config, 4).describe(), "global batch 24 = 4 ranks x 3 micro-batches x 2 sequences");
  EXPECT_EQ(refusal(config, 8),
            "c.toml: [training] global_batch_size: must be a multiple of job.reproducible_rows x ranks = 2 x 8 = 16");
  EXPECT_EQ(refusal(config, 3), "accepted");
  config.zero.shard_degree = 2;
  EXPECT_EQ(refusal(config, 4), "accepted");
  EXPECT_EQ(
      refusal(config, 6),
      "c.toml: [job] reproducible: hybrid sharding sums in one order only over a power of two of ranks, not over 6");
  config.zero.shard_degree = 0;
  config.training.global_batch_size.reset();
  EXPECT_EQ(refusal(config, 4),
            "c.toml: [job] reproducible: needs training.global_batch_size, since without it the batch depends on the "
            "ranks");
}

TEST(BatchArithmetic, ShardDegreeDividesTheRanks) {
  Config config = with(1, std::nullopt);
  config.zero.shard_degree = 4;
  EXPECT_EQ(refusal(config, 8), "accepted");
  EXPECT_THAT(refusal(config, 6), HasSubstr("must divide the number of ranks, 6, or be 0 (all)"));
}

TEST(BatchArithmetic, GroupsOfRanksReadTheSameRows) {
  Config config = with(2, 8);
  config.parallel.tensor = 2;
  config.parallel.context = 2;
  const BatchArithmetic batch = BatchArithmetic::of(config, 8);
  EXPECT_EQ(batch.mesh, (MeshShape{.shard = 2, .context = 2, .tensor = 2}));
  EXPECT_EQ(batch.ranks, 2);
  EXPECT_EQ(batch.describe(), "global batch 8 = 2 groups of 4 ranks x 2 micro-batches x 2 sequences");
  config.zero.shard_degree = 1;
  EXPECT_EQ(BatchArithmetic::of(config, 8).mesh, (MeshShape{.replicate = 2, .context = 2, .tensor = 2}));
}

TEST(BatchArithmetic, TheAxesDivideTheRanks) {
  Config config = with(1, std::nullopt);
  config.parallel.tensor = 3;
  EXPECT_EQ(refusal(config, 8), "c.toml: [parallel] tensor: must divide the number of ranks, 8");
  EXPECT_EQ(refusal(config, 2), "c.toml: [parallel] tensor: must divide the number of ranks, 2");
  config.parallel.context = 2;
  EXPECT_EQ(refusal(config, 8), "c.toml: [parallel] tensor: tensor x context = 6 must divide the number of ranks, 8");
  config.parallel.tensor = 1;
  EXPECT_EQ(refusal(config, 3), "c.toml: [parallel] context: must divide the number of ranks, 3");
  config.zero.shard_degree = 3;
  EXPECT_EQ(refusal(config, 8),
            "c.toml: [zero] shard_degree: must divide the number of ranks / 2 of [parallel], 4, or be 0 (all)");
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
