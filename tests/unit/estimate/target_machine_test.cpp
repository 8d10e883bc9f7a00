// Bytes as words, and the estimate for a machine that is elsewhere.
#include "zero/estimate/target_machine.h"
#include "models/families/families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <sstream>

#include "base/byte_count.h"
#include "base/error.h"
#include "base/log.h"
#include "zero/config/setup.h"

namespace zero {
namespace target_machine_test {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ByteCount, IsReadAndWrittenAsPeopleDo) {
  EXPECT_EQ(bytes_of_text("80GiB"), std::int64_t{80} << 30);
  EXPECT_EQ(bytes_of_text("1.5 TiB"), std::int64_t{3} << 39);
  EXPECT_EQ(bytes_of_text("80Gi"), std::int64_t{80} << 30);
  EXPECT_EQ(bytes_of_text("512m"), std::int64_t{512} << 20);
  EXPECT_EQ(bytes_of_text("80GB"), 80'000'000'000);
  EXPECT_EQ(bytes_of_text("4096B"), 4096);
  for (const char* bad :
       {"", "80", "1.5", "GiB", "-1GiB", "0", "nan", "inf", "1e300", "80 apples", "80GiBs", "80Gis", "99999999TiB"})
    EXPECT_EQ(bytes_of_text(bad), std::nullopt) << bad;
  EXPECT_EQ(bytes_text(0), "0.0 KiB");
  EXPECT_EQ(bytes_text(std::int64_t{3} << 19), "1.5 MiB");
  EXPECT_EQ(bytes_text(std::int64_t{1020} << 20), "1.00 GiB");
  EXPECT_EQ(bytes_text(std::int64_t{127} << 30), "127.00 GiB");
}

// The sizes of Llama 3 8B.
Config eight_billion(const std::string& more = "") {
  return parse_config(
      "[job]\noutput_dir = \"out\"\n[model]\npreset = \"tinyllama-1.1b\"\nvocab_size = 128256\nhidden_size = 4096\nintermediate_size = 14336\n"
      "num_hidden_layers = 32\nnum_attention_heads = 32\nnum_key_value_heads = 8\nmax_position_embeddings = 8192\n[data]\ntrain = [\"a.bin\"]\n"
      "[training]\nsteps = 1\nseq_len = 8192\n[activation_checkpoint]\nmode = \"full\"\n" +
          more,
      "run.toml");
}

MemoryEstimate judge(const Config& config, int ranks, const TargetMachine& target) {
  return estimate_memory(config, BatchArithmetic::of(config, ranks), make_model(model_config_of(config)),
                         budget_of(target, device_of(target, config)));
}

TEST(TargetMachine, IsAnsweredForIn80ColumnsAndSoon) {
  const auto begin = std::chrono::steady_clock::now();
  const MemoryEstimate estimate = judge(eight_billion(), 64, {64, 8, "80GiB", "cuda"});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  EXPECT_TRUE(estimate.fits) << estimate.table;
  EXPECT_LT(seconds.count(), 5);  // on a busy machine
  EXPECT_THAT(estimate.table, ::testing::StartsWith("it fits: a rank takes "));
  EXPECT_THAT(estimate.table, HasSubstr("of 79.00 GiB of GPU memory\n"));
  std::istringstream lines(estimate.table + estimate.stages);
  int rows = 0;
  for (std::string line; std::getline(lines, line); ++rows) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_GT(rows, 12);
  // 2 + 2 bytes an element, and 12 more in 64 parts.
  EXPECT_NEAR(double(estimate.plan.parameters), 2 * 8.03e9 / 64, 1e7);
  EXPECT_NEAR(double(estimate.plan.optimizer), 12 * 8.03e9 / 64, 1e7);
}

TEST(TargetMachine, MemoryOfANodeStaysWithin64Bits) {
  const Config config = eight_billion();
  EXPECT_GT(budget_of({64, 1024, "1024TiB", "cpu"}, at::kCPU).memory.available, std::int64_t{1} << 59);
  EXPECT_THROW(budget_of({64, 1024, "1025TiB", "cpu"}, at::kCPU), InputError);
}

TEST(TargetMachine, AnswersForEveryStage) {
  const MemoryEstimate estimate = judge(eight_billion("[zero]\nstage = 0\n"), 64, {64, 1, "80GiB", "cuda"});
  EXPECT_FALSE(estimate.fits);
  EXPECT_THAT(estimate.stages, ::testing::ContainsRegex("0\\*.* no\n"));
  EXPECT_THAT(estimate.stages, ::testing::ContainsRegex("3 .* yes\n"));
  EXPECT_THAT(estimate.nearest, HasSubstr("--set zero.stage="));
}

std::string refusal(const TargetMachine& target) {
  try {
    judge(eight_billion(), 2, target);
    return "accepted";
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(TargetMachine, AnswersOfTheMemoryThatIsNamed) {
  const std::int64_t held = budget_of({2, 1, "1TiB", "cpu"}, at::kCPU).process;
  const std::string little = text(held / 1024 / 1024 + 64, "MiB");
  const MemoryEstimate estimate = judge(eight_billion(), 64, {64, 4, little, "cpu"});
  EXPECT_EQ(estimate.node_offer, 4 * *bytes_of_text(little));
  EXPECT_THAT(estimate.table, HasSubstr(" of " + bytes_text(*bytes_of_text(little)) + " of host memory\n"));
  EXPECT_THAT(estimate.table, HasSubstr(" of " + bytes_text(4 * *bytes_of_text(little)) + " of a node's\n"));
  EXPECT_THAT(refusal({2, 4, "1MiB", "cpu"}), StartsWith("--memory 1MiB: is no more than the "));
  EXPECT_THAT(refusal({2, 1, "1GiB", "cuda"}), HasSubstr("1.00 GiB that are left to CUDA's context"));
}

TEST(TargetMachine, RanksAloneAreOnThisMachine) {
  const TargetMachine ranks{8, 1, "", ""};
  EXPECT_FALSE(ranks.named());
  EXPECT_EQ(ranks.ranks_here(1), 8);
  EXPECT_EQ(TargetMachine().ranks_here(2), 2);
  EXPECT_TRUE((TargetMachine{8, 1, "1GiB", ""}).named());
}

TEST(TargetMachine, NeedsItsMemory) {
  for (const char* memory : {"many", "80Gis"})
    EXPECT_EQ(
        refusal({2, 1, memory, "cuda"}),
        "--memory " + std::string(memory) + ": is no size; name a number above 0 with its unit, as in --memory 80GiB");
  EXPECT_THAT(refusal({2, 4, "", "cuda"}), StartsWith("--device cuda: also needs --memory SIZE"));
  EXPECT_THAT(refusal({0, 4, "", ""}), StartsWith("--ranks-per-node 4: also needs --memory SIZE"));
  EXPECT_THAT(refusal({0, 1, "", "cuda"}), StartsWith("--device cuda: also needs --memory SIZE"));
  for (const char* memory : {"80", "1.5", "0.5"}) try {
      judge(eight_billion(), 2, {2, 1, memory, "cuda"});
      ADD_FAILURE() << memory;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr("--memory " + std::string(memory) +
                                          ": needs a unit; gibibytes are written --memory " + memory + "GiB"));
    }
  try {
    judge(eight_billion(), 2, {2, 1, "85899345920", "cuda"});
    ADD_FAILURE();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("needs a unit; bytes are written --memory 85899345920B"));
  }
  const MemoryEstimate on_cpu = judge(eight_billion(), 64, {64, 4, "16GiB", "cpu"});
  EXPECT_THAT(on_cpu.table, HasSubstr(" of 16.00 GiB of host memory\n"));
  EXPECT_THAT(on_cpu.table, HasSubstr("4 ranks take "));
}

}  // namespace target_machine_test
}  // namespace zero
