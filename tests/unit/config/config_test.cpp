#include "zero/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "zero/config/config_keys.h"
#include "zero/config/optimizer_settings.h"

namespace zero {
namespace config_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// The least that is accepted; lines 1 to 9.
const std::string least =
    "[job]\n"
    "output_dir = \"out\"\n"
    "[model]\n"
    "path = \"model\"\n"
    "[data]\n"
    "train = [\"a.bin\"]\n"
    "[training]\n"
    "steps = 10\n"
    "seq_len = 64\n";

std::string refusal(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    parse_config(text, "c.toml", overrides);
  } catch (const InputError& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_input);
    return error.what();
  }
  return "accepted";
}

TEST(Config, DefaultsStandWhereNothingIsGiven) {
  const Config config = parse_config(least, "c.toml");
  EXPECT_EQ(config.training.steps, 10);
  EXPECT_EQ(config.training.global_batch_size, std::nullopt);
  EXPECT_EQ(config.training.precision, "bf16");
  EXPECT_EQ(config.zero.stage, 3);
  EXPECT_EQ(config.optimizer.beta1, 0.9);
  EXPECT_EQ(config.optimizer.beta2, 0.95);
  EXPECT_FALSE(config.lora);
  EXPECT_TRUE(config.is_given("training.steps"));
  EXPECT_FALSE(config.is_given("zero.stage"));
}

TEST(Config, TheAxesDivideHeads) {
  const std::string preset =
      "[job]\noutput_dir = \"out\"\n[model]\npreset = \"llama-15m\"\nnum_attention_heads = 6\n"
      "num_key_value_heads = 2\n[data]\ntrain = [\"a.bin\"]\n[training]\nsteps = 100\nseq_len = 8\n";
  const auto said = [&](const std::string& keys) { return refusal(preset + "[parallel]\n" + keys); };
  EXPECT_EQ(said("tensor = 2\n"), "accepted");
  EXPECT_EQ(said("tensor = 3\n"),
            "c.toml:13: [parallel] tensor = 3: must divide the model's 6 attention heads and 2 key-value heads");
  for (const char* ranks : {"2", "3", "5", "6"}) EXPECT_EQ(said(std::string("context = ") + ranks + "\n"), "accepted");
  EXPECT_THAT(said("context = 7\n"),
              HasSubstr("[parallel] context = 7: must not exceed the 6 attention heads of the model"));
  EXPECT_THAT(said("tensor = 2\ncontext = 4\n"), HasSubstr("3 attention heads of a rank"));
  EXPECT_THAT(said("tensor = 0\n"), HasSubstr("between 1 and"));
  for (const std::string key : {"tensor", "context"})
    EXPECT_THAT(refusal(preset + "[parallel]\n" + key + " = 2\n", {"job.reproducible=ranks"}),
                HasSubstr("[parallel] " + key + " = 2: adds parts of a sum"));
}

TEST(Config, MessagesBeginWithFileLineKeyAndValue) {
  EXPECT_EQ(refusal(least + "[zero]\nstage = 4\n"), "c.toml:11: [zero] stage = 4: must be 0, 1, 2 or 3");
  EXPECT_EQ(refusal(least, {"zero.stage=4"}), "--set zero.stage=4: must be 0, 1, 2 or 3");
}

TEST(Config, MisspeltKeysNameTheNearest) {
  EXPECT_EQ(refusal(least + "step = 3\n"),
            "c.toml:10: [training] step = 3: unknown key in [training]; the nearest known key is `steps`");
  EXPECT_THAT(refusal(least + "tokens_of_a_row = 3\n"), HasSubstr("known are steps, epochs, seq_len"));
  EXPECT_THAT(refusal(least + "lr = 3\n"), HasSubstr("`lr` is a key of [optimizer]"));
  EXPECT_THAT(refusal(least + "[optimiser]\nlr = 3\n"),
              HasSubstr("c.toml:10: [optimiser]: unknown section; the nearest known one is [optimizer]"));
  EXPECT_THAT(refusal(least + "[stage]\n"), HasSubstr("`stage` is a key of [zero]"));
  EXPECT_THAT(refusal("steps = 3\n" + least), HasSubstr("c.toml:1: steps = 3: must stand in section [training]"));
  EXPECT_THAT(refusal("zero = 3\n" + least), HasSubstr("must be a section, [zero]"));
  EXPECT_THAT(refusal(least, {"training.batch_size=3"}),
              StartsWith("--set training.batch_size=3: unknown key in [training]"));
  EXPECT_THAT(refusal(least, {"trainin.steps=3"}), HasSubstr("the nearest known one is [training]"));
  EXPECT_THAT(refusal(least, {"model.presset=llama-tiny"}), HasSubstr("the nearest known key is `preset`"));
}

TEST(Config, WrongTypesAreRefused) {
  EXPECT_EQ(refusal(least, {"training.seed=x"}), "--set training.seed=x: must be an integer, but is a string");
  EXPECT_THAT(refusal(least, {"training.seed=1.0"}), HasSubstr("must be an integer, but is a number"));
  EXPECT_THAT(refusal(least, {"data.shuffle=1"}), HasSubstr("must be true or false, but is an integer"));
  EXPECT_THAT(refusal(least, {"data.train=[1, 2]"}), HasSubstr("must be a list of strings, but is a list"));
  EXPECT_THAT(refusal(least, {"optimizer.betas=[0.9]"}),
              HasSubstr("must be a list of two numbers, but is a list of 1"));
  EXPECT_THAT(refusal(least + "[optimizer]\nbetas = [0.9, 1.1]\n"),
              HasSubstr("betas = [ 0.9, 1.1 ]: must be two numbers"));
  EXPECT_THAT(refusal(least, {"optimizer.lr=1979-05-27"}), HasSubstr("must be a number, but is a date or time"));
  EXPECT_THAT(refusal(least, {"data.tokenizer=true"}), HasSubstr("must be a string"));
  EXPECT_THAT(refusal(least, {"job.time_limit=60"}),
              HasSubstr("must be a string, but is an integer; it must be empty, or a time such as \"90:00\""));
  EXPECT_THAT(refusal(least, {"job.output_dir=3"}), ::testing::EndsWith("must be a string, but is an integer"));
}

TEST(Config, ImpossibleValuesAreRefused) {
  const std::pair<const char*, const char*> cases[] = {{"training.steps=0", "between 1 and 10000000000"},
                                                       {"training.seq_len=-1", "between 1 and 100000000"},
                                                       {"training.max_norm=-1", "between 0 and 1e30"},
                                                       {"training.precision=fp8", "\"fp32\", \"bf16\" or \"fp16\""},
                                                       {"optimizer.lr=nan", "finite"},
                                                       {"optimizer.lr=inf", "finite"},
                                                       {"optimizer.betas=[0.9, 1.0]", "below 1"},
                                                       {"optimizer.betas=[0.9,9007199254740993]", "below 1"},
                                                       {"optimizer.betas=[9007199254740993,0.5]", "below 1"},
                                                       {"optimizer.name=sgdm", "\"adamw\""},
                                                       {"optimizer.momentum=0.5", "is a setting of sgd, muon"},
                                                       {"lr_scheduler.min_lr_ratio=1.5", "between 0 and 1"},
                                                       {"comm.deadline_seconds=0", "greater than 0"},
                                                       {"data.train=[]", ": must not be empty"},
                                                       {"zero.shard_degree=-2", "between 0 and"},
                                                       {"checkpoint.keep=0", "between 1 and"}};
  for (const auto& [pair, rule] : cases) EXPECT_THAT(refusal(least, {pair}), HasSubstr(rule)) << pair;
}

TEST(Config, ContradictionsNameBothPlaces) {
  EXPECT_EQ(
      refusal(least + "epochs = 2\n"),
      "c.toml:10: [training] epochs = 2: contradicts steps (c.toml:8: [training] steps = 10); give one of the two");
  EXPECT_THAT(refusal(least + "[model]\npreset=\"llama-tiny\"\n"), HasSubstr("c.toml:"));
  EXPECT_THAT(refusal(least, {"model.hidden_size=8"}), HasSubstr("set with preset only"));
  EXPECT_THAT(refusal(least, {"lr_scheduler.warmup_steps=11"}),
              HasSubstr("must not exceed the run's 10 steps ([training] steps)"));
  EXPECT_THAT(refusal(least, {"lr_scheduler.warmup_steps=2", "lr_scheduler.warmup_ratio=0.1"}),
              HasSubstr("contradicts warmup_steps"));
  EXPECT_THAT(refusal(least, {"data.train=a.csv"}), HasSubstr("--set data.train=a.csv: must end in .txt, .jsonl, "));
  EXPECT_THAT(refusal(least, {"data.train=[\"a.bin\", \"a.csv\"]"}), HasSubstr("\"a.csv\"]: a.csv must end in .txt"));
  EXPECT_THAT(refusal(least, {"training.validation_interval=5"}), HasSubstr("needs files in [data] validation"));
  EXPECT_THAT(refusal(least, {"data.validation=a.bin"}),
              HasSubstr("--set data.validation=a.bin: needs [training] validation_interval"));
  EXPECT_EQ(refusal(least, {"data.validation=a.bin", "training.validation_interval=0"}), "accepted");
  EXPECT_THAT(
      refusal(least, {"training.on_nonfinite=rollback"}),
      HasSubstr("--set training.on_nonfinite=rollback: needs checkpoints to go back to: give [checkpoint] interval"));
  for (const char* checkpoints : {"checkpoint.interval=5", "checkpoint.every_minutes=1"})
    EXPECT_EQ(refusal(least, {"training.on_nonfinite=rollback", checkpoints}), "accepted");
  EXPECT_THAT(refusal(least, {"zero.stage=2", "offload.parameters=cpu"}), HasSubstr("needs [zero] stage = 3"));
  EXPECT_THAT(refusal(least, {"offload.activations=cpu"}), HasSubstr("needs [activation_checkpoint] mode = \"full\""));
  EXPECT_THAT(refusal(least, {"training.matmul_precision=high"}),
              HasSubstr("matmul_precision=high: is for fp32 runs, and training.precision is \"bf16\""));
  EXPECT_THAT(refusal(least, {"training.matmul_precision=low", "training.precision=fp32"}),
              HasSubstr("training.matmul_precision"));
  EXPECT_NO_THROW(parse_config(least, "test.toml", {"training.matmul_precision=high", "training.precision=fp32"}));
  EXPECT_THAT(refusal(least, {"activation_checkpoint.mlp_tokens=8", "parallel.tensor=2"}),
              HasSubstr("tiles of tokens"));
  EXPECT_THAT(refusal(least, {"activation_checkpoint.mlp_tokens=8", "job.reproducible=ranks"}),
              HasSubstr("adds gradients tile by tile"));
  EXPECT_THAT(refusal(least, {"offload.optimizer=nvme"}), HasSubstr("needs [offload] nvme_dir"));
}

const std::string grouped =
    least +
    "[optimizer]\nname = \"muon\"\nns_steps = 6\n[[optimizer.group]]\nmatch = \"*norm*\"\nweight_decay = 0\n"
    "[[optimizer.group]]\nmatch = [\"a\", \"b.*\"]\noptimizer = \"lion\"\nlr = 0.25\n[lr_scheduler]\nwarmup_steps = 1\n";

TEST(Config, OptimizersHaveSettingsAndDefaultsOfTheirOwn) {
  const OptimizerConfig lion = parse_config(least, "c.toml", {"optimizer.name=lion"}).optimizer;
  EXPECT_EQ(lion.beta1, 0.9);
  EXPECT_EQ(lion.beta2, 0.99);
  EXPECT_EQ(parse_config(least, "c.toml", {"optimizer.name=muon"}).optimizer.momentum, 0.95);
  EXPECT_THAT(
      refusal(least, {"optimizer.name=adafactor", "optimizer.eps=1e-8"}),
      HasSubstr("--set optimizer.eps=1e-8: is a setting of adamw, prodigy, muon, adamw8bit; \"adafactor\" knows lr and "
                "weight_decay"));
  const std::string resolved = resolved_toml(parse_config(least, "c.toml", {"optimizer.name=sgd"}));
  EXPECT_THAT(resolved, HasSubstr("\nmomentum = 0.9\nnesterov = true\n"));
  EXPECT_THAT(resolved, Not(HasSubstr("betas")));
}

TEST(Config, AnAdapterGivesItsSettingsItself) {
  const std::string resolved = resolved_toml(parse_config(least, "c.toml", {"lora.adapter=somewhere"}));
  EXPECT_THAT(resolved, HasSubstr("adapter = \"somewhere\""));
  for (const char* key : {"lora.r", "lora.lora_alpha", "lora.target_modules", "lora.use_dora"})
    EXPECT_FALSE(parse_config(resolved, "r.toml").is_given(key)) << key;
}

TEST(Config, GroupsOfTensorsAreReadAndRefused) {
  const Config config = parse_config(grouped, "c.toml");
  ASSERT_EQ(config.optimizer.groups.size(), 2u);
  EXPECT_EQ(config.optimizer.groups[0],
            (OptimizerGroup{.match = {"*norm*"}, .optimizer = {}, .lr = {}, .weight_decay = 0.0}));
  EXPECT_EQ(config.optimizer.groups[1],
            (OptimizerGroup{.match = {"a", "b.*"}, .optimizer = "lion", .lr = 0.25, .weight_decay = {}}));
  const std::string resolved = resolved_toml(config);
  EXPECT_TRUE(parse_config(resolved, "r.toml") == config);
  EXPECT_EQ(resolved_toml(parse_config(resolved, "r.toml")), resolved);
  const auto with = [](const std::string& line) { return least + "[[optimizer.group]]\n" + line + "\n"; };
  EXPECT_THAT(refusal(with("lr = 1.0")), HasSubstr("c.toml:10: [[optimizer.group]]: needs match"));
  EXPECT_THAT(refusal(with("match = \"a\"\nlr = -1")),
              HasSubstr("c.toml:12: [[optimizer.group]] lr = -1: must be between 0 and 1e30"));
  EXPECT_THAT(refusal(with("match = \"a\"\noptimizer = \"sgdm\"")), HasSubstr("must be \"adamw\", \"sgd\""));
  EXPECT_THAT(refusal(with("matches = \"a\"")),
              HasSubstr("unknown key; the nearest is match; known are match, optimizer"));
  EXPECT_THAT(refusal(with("match = []")), HasSubstr("c.toml:11: [[optimizer.group]] match = []: must not be empty"));
  EXPECT_THAT(refusal(with("match = [\"\"]")), HasSubstr("must not be empty"));
  EXPECT_THAT(refusal(with("match = \"a\"\nlr = 0.9\nlr_adamw = 1e-3")), HasSubstr("lr_adamw: is a setting of muon"));
  EXPECT_THAT(refusal(with("match = \"a\"\noptimizer = [\"lion\"]")), HasSubstr("must be a string"));
  EXPECT_THAT(refusal(least + "[[optimizer.groups]]\nmatch = \"a\"\n"), HasSubstr("the nearest known key is `group`"));
  EXPECT_THAT(refusal(least + "[optimizer]\nparameter_sets = 1\n"), HasSubstr("lr_adamw, group"));
  const Config muon = parse_config(with("match = \"a\"\noptimizer = \"muon\"\nlr_adamw = 0.5"), "c.toml");
  EXPECT_EQ(muon.optimizer.groups[0].lr_adamw, 0.5);
  EXPECT_EQ(muon.optimizer.groups[0].place, "c.toml:10");
  EXPECT_EQ(parse_groups(groups_toml(muon.optimizer)), muon.optimizer.groups);
  EXPECT_THAT(refusal(least + "[optimizer]\ngroup = 3\n"), HasSubstr("must be tables of match"));
  EXPECT_EQ(parse_config(with("match = \"a\"\nlr = 1"), "c.toml", {"optimizer.lr=0"}).optimizer.lr, 0);
  EXPECT_EQ(parse_config(least + "[optimizer]\nname = \"muon\"\nlr = 0\n", "c.toml").optimizer.lr_adamw, 3e-4);
  EXPECT_THAT(refusal(least, {"optimizer.group=3"}), HasSubstr("[[optimizer.group]] tables of a file"));
}

TEST(Config, ASectionInTheOverridesIsNamedAsOne) {
  EXPECT_THAT(
      refusal(least, {"optimizer=adamw"}),
      HasSubstr("`optimizer` is a section; must be --set optimizer.key=value, as in --set optimizer.name=adamw"));
  EXPECT_THAT(refusal(least, {"zero=2"}), HasSubstr("as in --set zero.stage=2"));
}

TEST(Config, DifferingGroupsAreReportedOnOneLine) {
  const auto with = [](const std::string& keys) { return "[[optimizer.group]]\nmatch = \"a\"\n" + keys + "\n"; };
  const std::vector<OptimizerGroup> then = parse_groups(with("lr = 0.1") + with("optimizer = \"lion\"")),
                                    now = parse_config(least + with("lr = 0.1") + with("lr = 0.3") + with(""), "c.toml")
                                              .optimizer.groups;
  EXPECT_EQ(groups_difference(now, then),
            "group 2 (c.toml:13): optimizer none now, \"lion\" then, lr 0.3 now, none then; group 3 (c.toml:16): there "
            "now, not then");
  EXPECT_EQ(groups_difference(now, now), "");
}

TEST(Config, RatesToLowerAreThoseOfTheOptimizer) {
  OptimizerConfig config;
  EXPECT_EQ(keys_of_rates(config), "optimizer.lr");
  config.name = "muon";
  EXPECT_THAT(keys_of_rates(config), HasSubstr("optimizer.lr_adamw"));
  config.name = "prodigy";
  EXPECT_THAT(keys_of_rates(config), AllOf(HasSubstr("optimizer.d_coef"), HasSubstr("optimizer.d0")));
}

TEST(Config, AnOverrideDisplacesTheFilesOtherOfAPair) {
  const Config epochs = parse_config(least, "c.toml", {"training.epochs=2"});
  EXPECT_EQ(epochs.training.epochs, 2.0);
  EXPECT_FALSE(epochs.training.steps || epochs.is_given("training.steps"));
  EXPECT_EQ(parse_config(resolved_toml(epochs), "again.toml"), epochs);
  const std::string preset =
      "[job]\noutput_dir=\"o\"\n[data]\ntrain=\"a.bin\"\n[training]\nepochs=1.0\nseq_len=8\n[model]\npreset=\"llama-tiny\"\n"
      "num_hidden_layers = 3\n";
  const Config path = parse_config(preset, "c.toml", {"training.steps=4", "model.path=m"});
  EXPECT_EQ(path.training.steps, 4);
  EXPECT_FALSE(path.training.epochs);
  EXPECT_EQ(path.model.path, "m");
  EXPECT_FALSE(path.model.preset);
  EXPECT_TRUE(path.model.fields.empty());  // they were the preset's
  EXPECT_EQ(parse_config(least, "c.toml", {"model.preset=llama-tiny"}).model.path, std::nullopt);
  for (const std::vector<std::string>& both :
       {std::vector<std::string>{"training.steps=3", "training.epochs=2"}, {"training.epochs=2", "training.steps=3"}}) {
    EXPECT_THAT(refusal(least, both), HasSubstr("contradicts steps (--set training.steps=3); give one of the two"));
    EXPECT_THAT(refusal(preset, both), HasSubstr("give one of the two"));
  }
  EXPECT_THAT(refusal(preset, {"model.preset=llama-15m", "model.path=m"}), HasSubstr("give one of the two"));
  EXPECT_THAT(refusal(preset, {"model.path=m", "model.hidden_size=8"}), HasSubstr("set with preset only"));
  EXPECT_THAT(refusal(preset, {"model.hidden_size=8", "model.path=m"}), HasSubstr("set with preset only"));
}

TEST(Config, MissingKeysAreNamed) {
  EXPECT_THAT(refusal(""), StartsWith("c.toml: [job] output_dir: is missing"));
  EXPECT_THAT(refusal("[job]\noutput_dir=\"o\"\n[model]\npath=\"m\"\n[data]\ntrain=\"a.bin\"\n[training]\nseq_len=4\n"),
              HasSubstr("[training] needs steps or epochs"));
}

TEST(Config, BrokenTomlIsRefusedWithItsLine) {
  EXPECT_THAT(refusal(least + "[zero\n"), StartsWith("c.toml:10: not valid TOML"));
  EXPECT_THAT(refusal(least + "steps = 3\n"), StartsWith("c.toml:10: not valid TOML"));
  EXPECT_THAT(refusal("\xff\xfe"), HasSubstr("not valid TOML"));
}

TEST(Config, OverridesAreTomlOrStringsAndTheLastWins) {
  const Config config = parse_config(least, "c.toml",
                                     {"zero.stage=1", "zero.stage = 2", "training.precision=fp32", "optimizer.lr=3",
                                      "data.train=b.bin", "lora.r=4", "lora.init_lora_weights=true"});
  EXPECT_EQ(config.zero.stage, 2);
  EXPECT_EQ(config.training.precision, "fp32");
  EXPECT_EQ(config.optimizer.lr, 3.0);
  EXPECT_EQ(config.data.train, std::vector<std::string>{"b.bin"});
  ASSERT_TRUE(config.lora);
  EXPECT_EQ(config.lora->r, 4);
  EXPECT_EQ(config.lora->init_lora_weights, "true");
  EXPECT_EQ(config.where("zero.stage"), "--set zero.stage = 2");
  EXPECT_THAT(refusal(least, {"zero.stage"}), HasSubstr("section.key=value"));
  EXPECT_THAT(refusal(least, {"stage=3"}), HasSubstr("must be --set zero.stage=3"));
}

TEST(Config, MessagesStayOneLine) {
  EXPECT_EQ(refusal(least, {"zero.stage=\"a\nb\""}).find('\n'), std::string::npos);
  EXPECT_EQ(refusal(least, {"zero\n.stage=1"}).find('\n'), std::string::npos);
  EXPECT_EQ(refusal(least + "\"a\\nb\" = 3\n").find('\n'), std::string::npos);
}

TEST(Config, AnEmptyLoraSectionSwitchesItOn) { EXPECT_TRUE(parse_config(least + "[lora]\n", "c.toml").lora); }

TEST(Config, PresetFieldsAreTriedWithTheirLine) {
  const std::string preset =
      "[job]\noutput_dir=\"o\"\n[data]\ntrain=\"a.bin\"\n[training]\nsteps=1\nseq_len=8\n[model]\npreset=\"llama-tiny\"\n";
  const Config config =
      parse_config(preset + "num_hidden_layers = 3\nrope_theta = 5e4\ntie_word_embeddings = true\n", "c.toml");
  EXPECT_EQ(config.model.fields.at("num_hidden_layers"), "3");
  EXPECT_EQ(config.model.fields.at("tie_word_embeddings"), "true");
  EXPECT_THAT(refusal(preset + "hidden_sizes = 3\n"), StartsWith("c.toml:10: [model] hidden_sizes = 3: "));
  EXPECT_THAT(refusal(preset, {"model.preset=llama-9b"}), HasSubstr("llama-15m"));
  EXPECT_THAT(refusal(preset, {"training.seq_len=100000"}), HasSubstr("must be at most the model's context"));
  EXPECT_THAT(refusal(preset, {"data.train=a.txt"}), HasSubstr("a preset has no tokenizer"));
}

TEST(Config, ResolvedConfigurationReadsBackEqual) {
  const std::string preset =
      "[job]\noutput_dir=\"o\\n\\\"\\u007f\\u00e9\"\n[data]\ntrain=[\"a.bin\", \"b c.bin\"]\n[training]\nepochs=1.5\nseq_len=8\nglobal_batch_size=64\n"
      "[model]\npreset=\"llama-tiny\"\nrope_theta=50000.0\nnum_hidden_layers=3\n[optimizer]\nlr=0.1234567890123456789\neps=1e-30\n";
  for (const std::string& text : {least, preset, least + "[lora]\nr = 3\n"}) {
    const Config config = parse_config(text, "c.toml");
    const std::string resolved = resolved_toml(config);
    EXPECT_EQ(parse_config(resolved, "resolved.toml"), config) << resolved;
    EXPECT_EQ(resolved_toml(parse_config(resolved, "resolved.toml")), resolved);
  }
  EXPECT_NE(parse_config(least, "c.toml"), parse_config(least, "c.toml", {"checkpoint.keep=3"}));
}

TEST(Config, FieldsOfAModelAreWrittenAsPlainKeys) {
  const Config config = parse_config(
      "[job]\noutput_dir=\"o\"\n[data]\ntrain=\"a.bin\"\n[training]\nsteps=1\nseq_len=8\n[model]\npreset=\"llama-tiny\"\nvocab_size = 32000\n",
      "c.toml");
  EXPECT_THAT(resolved_toml(config), HasSubstr("\nvocab_size = 32000\n"));
}

TEST(Config, SeveralMistakesAreReportedTogether) {
  const std::string said = refusal(least + "[zero]\nstage = 4\n[optimizer]\nlr = -1\n", {"training.seed=x"});
  EXPECT_THAT(said, HasSubstr("stage = 4: must be 0, 1, 2 or 3"));
  EXPECT_THAT(said, HasSubstr("\n  and: "));
  EXPECT_THAT(said, HasSubstr("lr = -1: must be between 0 and 1e30"));
  EXPECT_THAT(said, HasSubstr("--set training.seed=x: must be an integer"));
}

TEST(Config, NamesOfTheHubGetTheCommandThatDownloadsThem) {
  const Config config = parse_config(least, "c.toml", {"model.path=TinyLlama/TinyLlama-1.1B-Chat-v1.0"});
  try {
    check_files(config);
    ADD_FAILURE() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("zero_fetch TinyLlama/TinyLlama-1.1B-Chat-v1.0 --to TinyLlama/TinyLlama-1.1B-Chat-v1.0"));
    EXPECT_THAT(error.what(), HasSubstr("train = [ \"a.bin\" ]: does not exist"));
  }
}

TEST(Config, PlacesThatCannotBeWrittenToAreRefused) {
  const auto said = [](const std::string& pair, std::vector<std::string> more = {}) -> std::string {
    more.push_back(pair);
    try {
      check_files(parse_config(least, "c.toml", more));
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(said("job.output_dir=/proc/x"), HasSubstr("--set job.output_dir=/proc/x: /proc belongs to the kernel"));
  EXPECT_THAT(said("job.output_dir=" + std::string(300, 'a')), HasSubstr("a name of 300 characters"));
  EXPECT_THAT(said("metrics.dump_first_step=/nonexistent/a.safetensors"), HasSubstr("/nonexistent is no directory"));
  EXPECT_THAT(said("metrics.dump_first_step=/tmp"), HasSubstr("is a directory; name a file"));
  // A mistyped disk is not made. Folders of the run's own are.
  const auto on_disk = [&](const std::string& folder, const std::string& output = "out") {
    return said("offload.nvme_dir=" + folder, {"offload.optimizer=nvme", "job.output_dir=" + output});
  };
  EXPECT_THAT(on_disk("/tpm/states"),
              HasSubstr("--set offload.nvme_dir=/tpm/states: /tpm does not exist: only the last"));
  EXPECT_THAT(on_disk("nothere/states/"), HasSubstr("does not exist"));
  for (const auto& [folder, output] : {std::pair("states", "out"), std::pair("/tmp/zero-states/", "out"),
                                       std::pair("a/b/run-offload", "a/b/run"), std::pair("a/b/run/states", "a/b/run")})
    EXPECT_THAT(on_disk(folder, output), Not(HasSubstr("nvme_dir"))) << folder;
}

// A key accepts only values that are implemented: sums over ranks are in fp32.
TEST(Config, SumsOverRanksInLessThanFp32AreRefused) {
  EXPECT_NO_THROW(parse_config(least, "c.toml", {"zero.reduce_dtype=fp32"}));
  try {
    parse_config(least, "c.toml", {"zero.reduce_dtype=bf16"});
    ADD_FAILURE();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("zero.reduce_dtype"));
    EXPECT_THAT(error.what(), HasSubstr("\"fp32\""));
  }
}

TEST(Config, LargeAndMissingFilesAreRefused) {
  EXPECT_THROW(load_config("/nonexistent.toml"), InputError);
  EXPECT_THROW(load_config("/"), InputError);
  const std::string path = ::testing::TempDir() + "zero_large.toml";
  std::ofstream(path) << std::string((1 << 20) + 1, '#');
  EXPECT_THROW(load_config(path), InputError);
  std::remove(path.c_str());
}

TEST(Config, MissingDataFilesAreRefused) {
  const Config config = parse_config(least, "c.toml", {std::string("model.path=") + ZERO_TEST_DATA + "/tiny/model"});
  try {
    check_files(config);
    ADD_FAILURE() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), StartsWith("c.toml:6: [data] train = [ \"a.bin\" ]: does not exist"));
  }
  EXPECT_THROW(check_files(parse_config(least, "c.toml")), InputError);  // no such model directory
}

TEST(ConfigKeys, NoTwoRowsShareANameOrAField) {
  std::vector<std::string> names;
  for (const ConfigKey& key : config_keys()) names.push_back(key.full_name());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  std::vector<const void*> fields;
  Config config;
  const auto add = [&](auto field) {
    if constexpr (requires { field.first; })
      fields.insert(fields.end(), {field.first, field.second});
    else
      fields.push_back(field);
  };
  for (const ConfigKey& key : config_keys()) std::visit(add, key.field(config));
  std::sort(fields.begin(), fields.end());
  EXPECT_EQ(std::adjacent_find(fields.begin(), fields.end()), fields.end());
}

// ZERO_UPDATE_DOCS=1 writes the page instead.
TEST(ConfigKeys, TheDocumentationIsTheTable) {
  const std::string path = std::string(ZERO_TEST_DATA) + "/../../docs/configuration.md";
  if (std::getenv("ZERO_UPDATE_DOCS")) std::ofstream(path) << configuration_markdown();
  std::stringstream page;
  page << std::ifstream(path).rdbuf();
  EXPECT_EQ(page.str(), configuration_markdown()) << "run test_config with ZERO_UPDATE_DOCS=1";
}

}  // namespace config_test
}  // namespace zero
