#include "zero/config/setup.h"

#include <gtest/gtest.h>

namespace zero {
namespace {

Config config_of(const std::vector<std::string>& settings) {
  return parse_config(R"([job]
output_dir = "out"
[model]
preset = "llama-tiny"
[data]
train = ["tokens.bin"]
[training]
steps = 3
seq_len = 16
)",
                      "test.toml", settings);
}

at::ScalarType gradient_of(const std::vector<std::string>& overrides, int ranks) {
  std::vector<std::string> settings{"training.local_batch_size=2", "training.global_batch_size=8"};
  settings.insert(settings.end(), overrides.begin(), overrides.end());
  const Config config = config_of(settings);
  return precision_of(config, BatchArithmetic::of(config, ranks)).gradient;
}

// transformers' rule: the share of all steps, rounded up.
TEST(ScheduleOf, AWarmUpMayBeAShareOfTheSteps) {
  for (const auto& [ratio, steps, warmup] : {std::tuple(0.03, 100, 3), {0.03, 101, 4}, {0.0, 100, 7}, {1.0, 5, 5}})
    EXPECT_EQ(
        schedule_of(config_of({"training.steps=9", ratio > 0 ? "lr_scheduler.warmup_ratio=" + std::to_string(ratio)
                                                             : "lr_scheduler.warmup_steps=7"}),
                    steps)
            .warmup_steps,
        warmup)
        << ratio;
}

// Rounding errors of each micro-batch would add up.
TEST(PrecisionOf, GradientsOfSeveralMicroBatchesAreHeldInFp32) {
  for (const char* precision : {"training.precision=bf16", "training.precision=fp16"}) {
    const at::ScalarType compute = std::string(precision).ends_with("bf16") ? at::kBFloat16 : at::kHalf;
    EXPECT_EQ(gradient_of({precision}, 4), compute);
    EXPECT_EQ(gradient_of({precision}, 2), at::kFloat);
    EXPECT_EQ(gradient_of({precision}, 1), at::kFloat);
  }
  EXPECT_EQ(gradient_of({"zero.gradient_dtype=bf16"}, 1), at::kBFloat16);
  EXPECT_EQ(gradient_of({"zero.gradient_dtype=fp32"}, 4), at::kFloat);
}

// If results are to repeat, stages and ranks agree.
TEST(EngineOptionsOf, FuseNoAccumulationWhereResultsAreToRepeat) {
  EXPECT_TRUE(fuses_accumulation_on_gpus(config_of({})));
  EXPECT_FALSE(fuses_accumulation_on_gpus(config_of({"job.deterministic=true"})));
  EXPECT_FALSE(fuses_accumulation_on_gpus(config_of({"job.reproducible=ranks"})));
  const Config config = config_of({});
  EXPECT_FALSE(engine_options_of(config, BatchArithmetic::of(config, 1)).fuse_accumulation) << "those of CPUs";
}

}  // namespace
}  // namespace zero
