// Every number of the configuration at its limits: it keeps its meaning all the way to the memory estimate, or is
// refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "models/families/families.h"
#include "zero/config/config_keys.h"
#include "zero/config/run_model.h"
#include "zero/config/setup.h"
#include "zero/data/rows/sample_order.h"
#include "zero/estimate/disk_room.h"
#include "zero/estimate/memory_estimate.h"

namespace zero {
namespace config_limits_test {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int ranks = 2;

const char* const values[] = {"0",
                              "-1",
                              "1",
                              "2147483648",
                              "4294967296",
                              "9007199254740992",
                              "9223372036854775807",
                              "9223372036854775808",
                              "1e300",
                              "-1e300",
                              "1e-300",
                              "nan",
                              "inf",
                              "-inf"};

std::string base(const std::string& model) {
  return "[job]\noutput_dir = \"out\"\n" + model +
         "[data]\ntrain = [\"a.bin\"]\n[training]\nsteps = 20000000\nseq_len = 64\nprecision = \"fp32\"\n";
}
const std::string with_preset = base("[model]\npreset = \"llama-tiny\"\n");

// Does what zero_train --dry-run does. Returns the message of a refusal; empty if all was accepted.
std::string refusal(const std::string& text, const std::vector<std::string>& overrides) {
  try {
    Config config = parse_config(text, "c.toml", overrides);
    validate_for(config, ranks);
    const BatchArithmetic batch = BatchArithmetic::of(config, ranks);
    EXPECT_GT(batch.accumulation, 0);
    EXPECT_EQ(batch.accumulation * batch.local_batch_size * ranks, batch.global_batch_size);
    const ModelConfig model = model_config_of(config);
    validate_for_model(config, model);
    NodeBudget budget;
    budget.ranks_here = ranks;
    budget.memory = {std::int64_t{24} << 30, "MemAvailable"};
    const MemoryEstimate estimate = estimate_memory(config, batch, make_run_model(config, model, false).model, budget);
    for (const std::int64_t bytes :
         {estimate.plan.parameters, estimate.plan.gradients, estimate.plan.optimizer, estimate.plan.activations.peak(),
          estimate.plan.peak(), estimate.plan.checkpoint, estimate.node_peak})
      EXPECT_GE(bytes, 0) << ::testing::PrintToString(overrides);
    const DiskNeed disk = disk_need(config, make_model(model), estimate.plan, config.training.steps);
    EXPECT_GE(disk.checkpoints, config.checkpoint.interval > 0 ? 2 * estimate.plan.checkpoint : 0);
    EXPECT_GT(disk.sum(), disk.checkpoints);
    require_fit(config, estimate, budget);
    const std::string resolved = resolved_toml(config);
    EXPECT_EQ(parse_config(resolved, "resolved.toml"), config) << resolved;
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

bool is_number(const ConfigKey& key) {
  const std::string type = type_name(key.field(*std::make_unique<Config>()));
  return type == "integer" || type == "number";
}

TEST(ConfigLimits, EveryNumberIsTakenAsItIsOrRefusedByName) {
  int accepted = 0, refused = 0;
  for (const ConfigKey& key : config_keys()) {
    if (!is_number(key)) continue;
    std::vector<std::string> more;
    if (key.full_name() == "training.epochs") continue;  // stands in place of steps, below
    if (key.section == "checkpoint") more = {"checkpoint.interval=1"};
    if (key.section == "activation_checkpoint") more = {"activation_checkpoint.mode=selective"};
    if (key.section == "preference") more = {"data.train=a.jsonl", "data.tokenizer=t"};
    for (const char* value : values) {
      std::vector<std::string> overrides = more;
      overrides.push_back(key.full_name() + "=" + value);
      std::string said;
      EXPECT_NO_THROW(said = refusal(with_preset, overrides)) << overrides.back();
      ++(said.empty() ? accepted : refused);
      EXPECT_THAT(said, AnyOf(::testing::IsEmpty(), HasSubstr(key.name), HasSubstr("does not fit")))
          << overrides.back();
    }
  }
  EXPECT_GT(accepted, 30);
  EXPECT_GT(refused, 200);
}

TEST(ConfigLimits, EveryFieldOfAPresetIsTakenOrRefusedByName) {
  for (const char* field : {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
                            "num_attention_heads", "num_key_value_heads", "head_dim", "max_position_embeddings",
                            "rms_norm_eps", "rope_theta", "initializer_range"})
    for (const char* value : values) {
      if (field == std::string("num_hidden_layers") && value == std::string("2147483648")) continue;
      const std::string pair = std::string("model.") + field + "=" + value;
      EXPECT_NO_THROW(refusal(with_preset, {pair})) << pair;
    }
  EXPECT_THAT(refusal(with_preset, {"model.hidden_size=16777216", "model.intermediate_size=16777216",
                                    "model.num_hidden_layers=4096", "model.head_dim=64"}),
              HasSubstr("parameters"));
  EXPECT_THAT(refusal(with_preset, {"model.max_position_embeddings=100000000", "training.seq_len=100000000",
                                    "training.local_batch_size=1000000"}),
              HasSubstr("local_batch_size=1000000: makes a micro-batch of"));
}

// The bounds themselves: a value beyond them may also be refused for another reason, or change its meaning in silence.
TEST(ConfigLimits, ValuesBeyondABoundAreRefusedByItsRule) {
  for (const char* pair :
       {"training.seq_len=100000001", "training.local_batch_size=1000001", "training.global_batch_size=10000001",
        "training.steps=10000000001", "lr_scheduler.warmup_steps=10000000001",
        "training.validation_interval=10000000001", "checkpoint.interval=10000000001", "checkpoint.keep=1000000001",
        "metrics.log_interval=10000000001", "metrics.sample_tokens=1000001", "activation_checkpoint.every=65537",
        "lora.r=65537", "zero.shard_degree=1000001", "comm.ranks_per_gpu=1025", "optimizer.eps=1e-31",
        "optimizer.eps=1e31", "optimizer.lr=1e31", "training.max_norm=1e31", "optimizer.weight_decay=1e31"})
    EXPECT_THAT(refusal(with_preset, {pair}),
                ::testing::StartsWith(std::string("--set ") + pair + ": must be between "))
        << pair;
  EXPECT_THAT(refusal(with_preset, {"comm.deadline_seconds=1.1e8"}),
              HasSubstr("must be greater than 0 and at most 100000000"));
  for (const char* pair : {"data.weights=[1e13]", "data.weights=[1, 0]", "data.weights=[-2]"})
    EXPECT_THAT(refusal(with_preset, {pair}), HasSubstr("must be a list of numbers above 0 and at most 1e12")) << pair;
}

TEST(ConfigLimits, EpochsBecomeStepsWithoutOverflow) {
  std::string text = with_preset;
  text.replace(text.find("steps = 20000000"), 16, "epochs = 1.0");
  for (const char* value : {"0", "-1", "1e300", "nan", "inf", "9223372036854775807", "1000001"})
    EXPECT_THAT(refusal(text, {std::string("training.epochs=") + value}), HasSubstr("training.epochs=")) << value;
  EXPECT_EQ(refusal(text, {"training.epochs=1000000"}), "");
  EXPECT_NEAR(double(SampleOrder({std::int64_t{1} << 32, 1, 0, true}).steps_of(1e6)), 4294967296e6, 1e4);
  EXPECT_EQ(SampleOrder({3, 10'000'000, 0, true}).steps_of(1e-300), 1);
}

TEST(ConfigLimits, WarmUpIsHeldAgainstTheResolvedSteps) {
  const Config config = parse_config(with_preset, "c.toml", {"lr_scheduler.warmup_steps=100"});
  EXPECT_NO_THROW(validate_for_steps(config, 100, "all"));
  try {
    validate_for_steps(config, 3, "epochs = 0.05");
    ADD_FAILURE() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("--set lr_scheduler.warmup_steps=100: must not exceed the run's 3 steps (epochs = 0.05)"));
    EXPECT_THAT(error.what(), HasSubstr("--set lr_scheduler.warmup_steps=0"));
  }
}

TEST(ConfigLimits, TextsWithNulAreRefused) {
  EXPECT_THAT(refusal(with_preset, {"data.tokenizer=\"a\\u0000b\""}), HasSubstr("must not hold the character NUL"));
  EXPECT_THAT(refusal(with_preset, {"data.train=[\"a\\u0000.bin\"]"}), HasSubstr("must not hold the character NUL"));
}

}  // namespace config_limits_test
}  // namespace zero
