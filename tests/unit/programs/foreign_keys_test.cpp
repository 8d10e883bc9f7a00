#include "zero/config/foreign_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "zero/config/config_keys.h"
#include "zero/programs/key_hint.h"
#include "zero/programs/stray_arguments.h"

namespace zero {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string least =
    "[job]\noutput_dir = \"out\"\n[model]\npath = \"model\"\n[data]\ntrain = [\"a.bin\"]\n[training]\nsteps = 10\nseq_len = 64\n";

std::string refusal(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    parse_config(text, "c.toml", overrides);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ForeignKeys, EachIsRefusedWithTheKeyThatItIsHere) {
  std::vector<std::string> names;
  for (const ForeignKey& foreign : foreign_keys()) {
    names.push_back(foreign.name);
    const std::size_t dot = foreign.key.find('.'), own = foreign.name.find('.');
    const std::string section = foreign.key.substr(0, dot), key = foreign.key.substr(dot + 1);
    const auto is_it = [&](const ConfigKey& row) { return row.full_name() == foreign.key; };
    ASSERT_TRUE(std::any_of(config_keys().begin(), config_keys().end(), is_it))
        << foreign.name << " is said to be " << foreign.key;
    const std::string place = own == std::string::npos ? "training." + foreign.name : foreign.name;
    const std::string said = refusal(least, {place + "=1"});
    EXPECT_THAT(said, AllOf(HasSubstr("--set " + place + "=1: unknown key"),
                            HasSubstr("is `" + key + "` in [" + section + "]")))
        << foreign.name;
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end()) << "a name stands twice";
}

TEST(ForeignKeys, KeysWithoutACounterpartAreRefusedWithTheReason) {
  for (const AbsentKey& absent : absent_keys())
    EXPECT_THAT(
        refusal(least, {"training." + absent.name + "=1"}),
        AllOf(HasSubstr("unknown key in [training]; `" + absent.name + "` (" + absent.tools + ") is not there: "),
              HasSubstr(absent.why)));
}

TEST(ForeignKeys, ValuesOfOtherToolsAreNamedAsTheyAreHere) {
  EXPECT_THAT(refusal(least, {"training.precision=float16"}),
              HasSubstr("must be \"fp32\", \"bf16\" or \"fp16\"; float16 is called \"fp16\" here"));
  EXPECT_THAT(refusal(least, {"training.precision=bf16-mixed"}), HasSubstr("bf16-mixed is called \"bf16\" here"));
  EXPECT_THAT(refusal(least, {"training.precision=fp8"}), HasSubstr("; 8-bit floats are not there"));
  EXPECT_THAT(refusal(least, {"optimizer.name=adamw_torch"}), HasSubstr("adamw_torch is called \"adamw\" here"));
  EXPECT_THAT(refusal(least, {"zero.gradient_dtype=float16"}), Not(HasSubstr("is called")));
}

TEST(ForeignKeys, AreKnownAsSectionsAndAtTheTopToo) {
  EXPECT_THAT(refusal(least + "[zero_optimization]\nstage = 3\n"),
              HasSubstr("[zero_optimization]: unknown section; `zero_optimization` (DeepSpeed) is `stage` in [zero]"));
  EXPECT_THAT(refusal("learning_rate = 1\n" + least),
              HasSubstr("`learning_rate` (Hugging Face, PEFT, LitGPT) is `lr` in [optimizer]"));
  EXPECT_THAT(refusal(least + "[lora]\nrank = 8\n"), HasSubstr("is `r` in [lora]"));
  EXPECT_THAT(refusal(least, {"training.Learning-Rate=1"}), HasSubstr("is `lr` in [optimizer]"));
  EXPECT_THAT(refusal(least, {"model.model_name_or_path=x"}), HasSubstr("is `path` in [model]"));
  EXPECT_THAT(refusal(least, {"model.name=x"}), HasSubstr("is `path` in [model]"));
  EXPECT_THAT(refusal(least, {"optimizer.type=adam"}), HasSubstr("is `name` in [optimizer]"));
}

TEST(ForeignKeys, FilesOfOtherToolsAreRecognised) {
  const std::string deepspeed =
      "{\n  \"train_batch_size\": 8,\n  \"bf16\": {\"enabled\": true},\n  \"zero_optimization\": {\"stage\": 3}\n}\n";
  EXPECT_THAT(refusal(deepspeed), AllOf(HasSubstr("c.toml:1: not valid TOML: this is JSON, DeepSpeed's by its keys"),
                                        HasSubstr("`train_batch_size` is `global_batch_size` in [training]"),
                                        HasSubstr("`zero_optimization` is `stage` in [zero]"),
                                        HasSubstr("zero_config --from translates this one")));
  EXPECT_THAT(refusal("{\"a\": 1}"),
              AllOf(HasSubstr("this is JSON; a configuration is TOML"), Not(HasSubstr("DeepSpeed"))));
  EXPECT_THAT(refusal("# of axolotl\nbase_model: x\nmicro_batch_size: 2\n"),
              AllOf(HasSubstr("this looks like YAML"), HasSubstr("zero_config --from translates this one"),
                    HasSubstr("`micro_batch_size` is `local_batch_size` in [training]")));
  EXPECT_THAT(refusal("learning_rate: 1\n"), Not(HasSubstr("zero_config")));
  EXPECT_THAT(refusal("[job\n"), Not(HasSubstr("YAML")));
}

TEST(ForeignKeys, AreKnownWithoutASectionToo) {
  EXPECT_THAT(
      refusal(least, {"train_micro_batch_size_per_gpu=3"}),
      HasSubstr(
          "--set train_micro_batch_size_per_gpu=3: unknown key outside of any section; `train_micro_batch_size_per_gpu` (DeepSpeed) is `local_batch_size` in [training]"));
  EXPECT_THAT(refusal(least, {"lr=1e-3"}), HasSubstr("--set lr=1e-3: must be --set optimizer.lr=1e-3"));
  for (const char* pair : {"bananas=3", "=3", "zero.stage", "stage"})
    EXPECT_THAT(refusal(least, {pair}), HasSubstr(std::string("--set ") + pair +
                                                  ": must have the form section.key=value, as in --set zero.stage=2"))
        << pair;
}

TEST(StrayArguments, NameTheKeyThatTheyMean) {
  const std::vector<std::string> options{"--set", "--overwrite"};
  EXPECT_EQ(stray_arguments_message({"--lr", "1e-3"}, options, key_hint),
            "--lr 1e-3: are no arguments; keys of the configuration are given as --set optimizer.lr=1e-3");
  EXPECT_THAT(stray_arguments_message({"--zero-stage=2"}, options, key_hint), HasSubstr("--set zero.stage=2"));
  EXPECT_THAT(stray_arguments_message({"--optimizer.lr=2"}, options, key_hint), HasSubstr("--set optimizer.lr=2"));
  EXPECT_THAT(stray_arguments_message({"--learning_rate", "2"}, options, key_hint),
              HasSubstr("is `lr` in [optimizer]"));
  EXPECT_EQ(stray_arguments_message({"more.toml"}, options, key_hint), "more.toml: is no argument");
  EXPECT_THAT(stray_arguments_message({"--lr", "2"}, {"--prompt"}, key_hint), Not(HasSubstr("--set")))
      << "of a program without a configuration";
}

TEST(StrayArguments, NameTheNearestOption) {
  const std::vector<std::string> options{"--set", "--dry-run", "--max-new-tokens", "--prompt", "--prompts"};
  EXPECT_EQ(stray_arguments_message({"--max_new_tokens", "5"}, options, key_hint),
            "--max_new_tokens 5: are no arguments; the option is --max-new-tokens");
  EXPECT_EQ(stray_arguments_message({"--dry_run"}, options, key_hint),
            "--dry_run: is no argument; the option is --dry-run");
  EXPECT_EQ(stray_arguments_message({"--sett", "zero.stage=2"}, options, key_hint),
            "--sett zero.stage=2: are no arguments; the nearest option is --set");
  EXPECT_EQ(stray_arguments_message({"--promt=x"}, options, key_hint),
            "--promt=x: is no argument; the nearest option is --prompt");
  EXPECT_EQ(stray_arguments_message({"--bananas"}, options, key_hint), "--bananas: is no argument");
  EXPECT_EQ(stray_arguments_message({"--lr", "3"}, {"--help", "--ids"}, key_hint), "--lr 3: are no arguments")
      << "dashes are no letters in common";
  EXPECT_EQ(stray_arguments_message({"--helpp"}, {"--help"}), "--helpp: is no argument");
}

}  // namespace
}  // namespace zero
