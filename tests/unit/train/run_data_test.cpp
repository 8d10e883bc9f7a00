#include "zero/train/run_data.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "comm/lone_communicator.h"
#include "tests/unit/message_of.h"
#include "zero/config/setup.h"

namespace zero {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Why a run of such data cannot begin; there is no such file, so that it never does.
std::string refusal(const std::string& file, int seq_len, const RopeScaling& rope) {
  const Config config =
      parse_config("[job]\noutput_dir = \"out\"\n[model]\npreset = \"llama-tiny\"\n[data]\ntrain = [\"" + file +
                       "\"]\ntokenizer = \"none\"\n[training]\nsteps = 1\nseq_len = " + std::to_string(seq_len) + "\n",
                   "c.toml");
  ModelConfig model = model_config_of(config);
  model.rope_scaling = rope;
  LoneCommunicator alone;
  return message_of<Error>(
      [&] { open_training_data(config, BatchArithmetic::of(config, 1), model, std::nullopt, alone); });
}

/// Examples of several lengths would turn by the factors of the longest of their micro-batch.
TEST(RunData, ExamplesBeyondTheOldContextOfLongropeAreRefused) {
  const LongRopeScaling rope{.original_max_position_embeddings = 16};
  for (const char* file : {"none.jsonl", "none.json"})
    EXPECT_THAT(refusal(file, 17, rope),
                AllOf(HasSubstr("seq_len"), HasSubstr("= 17"), HasSubstr("beyond 16 positions"), HasSubstr("longrope"),
                      HasSubstr(file)));
  EXPECT_THAT(refusal("none.jsonl", 16, rope), Not(HasSubstr("longrope")));
  EXPECT_THAT(refusal("none.bin", 17, rope), Not(HasSubstr("longrope"))) << "windows have one length";
  EXPECT_THAT(refusal("none.jsonl", 17, LinearScaling{}), Not(HasSubstr("longrope")));
}

}  // namespace
}  // namespace zero
