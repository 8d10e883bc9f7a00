#include "zero/optim/state_storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/log.h"
#include "tests/unit/message_of.h"
#include "zero/config/optimizer_settings.h"

namespace zero {
namespace state_storage_test {

using ::testing::HasSubstr;

const std::string least =
    "[job]\noutput_dir = \"out\"\n[model]\npreset = \"llama-tiny\"\n[data]\ntrain = [\"a.bin\"]\n"
    "[training]\nsteps = 1\nseq_len = 8\n";

std::string refusal(const std::string& text, const std::vector<std::string>& overrides) {
  return message_of<InputError>([&] { parse_config(text, "c.toml", overrides); });
}

TEST(StateStorage, StatesInFewerBytesAreThoseThatThereAre) {
  const auto storage = [](const std::vector<std::string>& overrides) {
    return state_storage_of(parse_config(least, "c.toml", overrides));
  };
  EXPECT_EQ(storage({}), StateStorage());
  EXPECT_EQ(storage({"optimizer.state_dtype=bf16", "optimizer.master_dtype=split", "training.seed=3"}),
            (StateStorage{.bf16_states = true, .split_master = true, .seed = 3}));
  for (const char* const name : {"adamw", "lion", "muon", "prodigy"})
    EXPECT_TRUE(storage({text("optimizer.name=", name), "optimizer.state_dtype=bf16"}).bf16_states) << name;
  EXPECT_THAT(refusal(least, {"optimizer.name=adafactor", "optimizer.state_dtype=bf16"}),
              HasSubstr("--set optimizer.state_dtype=bf16: \"adafactor\" keeps no fp32 number of each element"));
  EXPECT_THAT(refusal(least, {"optimizer.name=adamw8bit", "optimizer.state_dtype=bf16"}),
              HasSubstr("\"adamw8bit\" keeps no fp32 number of each element"));
  EXPECT_THAT(refusal(least, {"optimizer.name=sgd", "optimizer.momentum=0", "optimizer.state_dtype=bf16"}),
              HasSubstr("\"sgd\" without momentum keeps no fp32 number of each element that could be rounded: leave it "
                        "out, or give \"fp32\", or give momentum"));
  const std::string group = least + "[[optimizer.group]]\nmatch = \"*norm*\"\noptimizer = \"lion\"\n";
  EXPECT_TRUE(
      state_storage_of(parse_config(group, "c.toml", {"optimizer.name=adafactor", "optimizer.state_dtype=bf16"}))
          .bf16_states);
  EXPECT_THAT(
      refusal(least, {"optimizer.master_dtype=split", "training.precision=fp32"}),
      HasSubstr("--set optimizer.master_dtype=split: splits fp32 masters over bf16 weights, and with [training] "
                "precision = \"fp32\" the weights are the masters: leave it out"));
  EXPECT_THAT(refusal(least, {"optimizer.master_dtype=split", "training.precision=fp16"}),
              HasSubstr("no 16 bits hold the rest of a master: leave it out, or give precision = \"bf16\""));
  EXPECT_THAT(refusal(least, {"optimizer.master_dtype=bf16"}), HasSubstr("must be \"fp32\" or \"split\""));
}

}  // namespace state_storage_test
}  // namespace zero
