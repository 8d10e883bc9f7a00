// The settings that a resumed run must share with its checkpoint: exactly those that shape an id or a mask.
#include "zero/train/resume_settings.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/error.h"
#include "models/text/chat_template.h"
#include "tests/unit/models/small_tokenizer.h"
#include "tests/unit/temporary_folder.h"
#include "zero/config/optimizer_settings.h"
#include "zero/config/setup.h"
#include "zero/train/settings_difference.h"

namespace zero {
namespace resume_settings_test {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string token =
    R"({"content": "<|im_end|>", "lstrip": false, "normalized": false, "rstrip": false, "single_word": false, "special": true})";

void write(const std::string& path, const std::string& content) { std::ofstream(path) << content; }

/// A run on conversations from a small model directory, which tests change between two looks.
class ChangingRun {
 public:
  ChangingRun() {
    for (const auto& entry : fs::directory_iterator(ZERO_TEST_DATA "/tiny/model"))
      fs::copy(entry.path(), fs::path(folder_.path()) / entry.path().filename());
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      fs::permissions(entry.path(), fs::perms::owner_all);
    write(path("tokenizer.model"), test::small_tokenizer_model());
    write(path("tokenizer_config.json"), settings());
    write(path("chat_template.jinja"), zephyr());
    write(path("train.jsonl"), R"({"text": "the"})");
  }

  std::string path(const std::string& name) const { return folder_ / name; }

  static std::string settings(const std::string& more = "") {
    return R"({"added_tokens_decoder": {"301": )" + token + R"(}, "model_max_length": 5, "legacy": false)" + more + "}";
  }
  static std::string zephyr() { return ChatTemplate::named("zephyr", "<s>", "</s>").jinja(); }

  Settings look(const std::string& more = "") const {
    const Config config =
        parse_config("[job]\noutput_dir='out'\n[model]\npath='" + folder_.path() + "'\n[data]\ntrain=['" +
                         path("train.jsonl") + "']\n" + more + "\n[training]\nsteps=1\nseq_len=8\n",
                     "config.toml");
    return resume_settings(config, BatchArithmetic::of(config, 1), model_config_of(config));
  }

 private:
  TemporaryFolder folder_;
};

/// Keys whose values differ.
std::vector<std::string> changed(const Settings& then, const Settings& now) {
  const std::map<std::string, std::string> before(then.begin(), then.end()), after(now.begin(), now.end());
  std::vector<std::string> keys;
  for (const auto& [key, value] : before)
    if (!after.contains(key) || after.at(key) != value) keys.push_back(key);
  for (const auto& [key, value] : after)
    if (!before.contains(key)) keys.push_back(key);
  return keys;
}

using Keys = std::vector<std::string>;

TEST(ResumeSettings, ChangesToIdsOrMasksAreDetected) {
  const auto differ = [](const auto& change) {
    const ChangingRun run;
    const Settings then = run.look();
    change(run);
    return changed(then, run.look());
  };
  EXPECT_EQ(differ([](const ChangingRun& run) {
              write(run.path("chat_template.jinja"), ChatTemplate::named("llama-2", "<s>", "</s>").jinja());
            }),
            Keys{"data.chat_template"});
  EXPECT_EQ(differ([](const ChangingRun& run) { fs::remove(run.path("chat_template.jinja")); }),
            Keys{"data.chat_template"});
  EXPECT_EQ(differ([](const ChangingRun& run) {
              write(run.path("tokenizer_config.json"), ChangingRun::settings(R"(, "add_prefix_space": false)"));
            }),
            Keys{"data.tokenizer"});
  EXPECT_EQ(differ([](const ChangingRun& run) {
              write(run.path("tokenizer_config.json"),
                    R"({"legacy": true, "added_tokens_decoder": {"301": )" + token + "}}");
            }),
            Keys{"data.tokenizer"});
  EXPECT_EQ(differ([](const ChangingRun& run) { write(run.path("tokenizer_config.json"), R"({"legacy": false})"); }),
            Keys{"data.tokenizer"});
  EXPECT_EQ(differ([](const ChangingRun& run) {
              write(run.path("tokenizer_config.json"), ChangingRun::settings(R"(, "eos_token": "<s>")"));
            }),
            Keys{"data.tokenizer"});
  EXPECT_EQ(differ([](const ChangingRun& run) { write(run.path("tokenizer.json"), R"({"model": {"merges": []}})"); }),
            Keys{"data.tokenizer"});
  EXPECT_EQ(differ([](const ChangingRun& run) {
              write(run.path("tokenizer.model"), test::small_tokenizer_model() + std::string("\x1A\x02\x18\x00", 4));
            }),
            Keys{"data.tokenizer"});
  EXPECT_EQ(differ([](const ChangingRun& run) { write(run.path("train.jsonl"), R"({"text": "thy"})"); }),
            Keys{"data.train"});
  EXPECT_EQ(differ([](const ChangingRun& run) {
              write(run.path("tokenizer_config.json"),
                    ChangingRun::settings(R"(, "pad_token": "x", "padding_side": "left")"));
            }),
            Keys{});
}

TEST(ResumeSettings, ATemplateIsKnownByItsTextAndNotByTheWayItWasNamed) {
  const ChangingRun run;
  EXPECT_EQ(changed(run.look(), run.look("chat_template='zephyr'")), Keys{});
  EXPECT_EQ(changed(run.look(), run.look("chat_template='alpaca'")), Keys{"data.chat_template"});
}

TEST(ResumeSettings, WeightsOfFilesAreDetected) {
  const ChangingRun run;
  EXPECT_EQ(changed(run.look("weights=[1]"), run.look("weights=[2]")), Keys{"data.weights"});
}

TEST(ResumeSettings, FieldsThatTheDecoderDoesNotReadMayChange) {
  const ChangingRun run;
  const Settings then = run.look();
  std::ifstream file(run.path("config.json"));
  std::string config((std::istreambuf_iterator<char>(file)), {});
  write(run.path("config.json"), config.insert(config.find('{') + 1, "\"note\": 0, "));
  EXPECT_EQ(changed(then, run.look()), Keys{});
}

TEST(ResumeSettings, ChangesToAnAdapterAreDetected) {
  const TemporaryFolder adapter;
  for (const char* name : {"/adapter_config.json", "/adapter_model.safetensors"})
    fs::copy(std::string(ZERO_TEST_DATA "/tiny-lora/adapter") + name, adapter.path() + name);
  fs::permissions(adapter / "adapter_config.json", fs::perms::owner_all);
  const ChangingRun run;
  const std::string lora = "[lora]\nadapter='" + adapter.path() + "'";
  const Settings then = run.look(lora);
  std::ifstream file(adapter / "adapter_config.json");
  std::string config((std::istreambuf_iterator<char>(file)), {});
  const std::size_t place = config.find(':', config.find("\"lora_alpha\"")) + 1;
  write(adapter / "adapter_config.json",
        config.insert(place, " 9").erase(place + 2, config.find_first_of(",}", place) - place - 2));
  EXPECT_EQ(changed(then, run.look(lora)), Keys{"lora.lora_alpha"});
}

TEST(ResumeSettings, FilesAreReadToTheirEnds) {
  const TemporaryFolder folder;
  const std::string path = folder / "large.bin";
  write(path, "");
  fs::resize_file(path, 200 << 20);  // of zeros, which take no room on the disk
  const std::string then = file_mark(path);
  EXPECT_EQ(file_mark(path, own_cores()), then);
  EXPECT_THAT(then, HasSubstr("209715200 bytes, "));
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp((100 << 20) + 777);
  file.put('\x01');
  file.close();
  EXPECT_NE(file_mark(path), then);
}

std::string refusal(const std::vector<std::string>& accepted) {
  try {
    check_accepted(accepted);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ResumeSettings, AcceptedChangesAreKeysThatMayChange) {
  EXPECT_EQ(refusal({"optimizer.lr", "data.train", "data.chat_template"}), "accepted");
  EXPECT_THAT(refusal({"optimizer.lr", "optimiser.lr"}),
              ::testing::AllOf(HasSubstr("--accept-change optimiser.lr"), HasSubstr("`optimizer.lr`")));
  EXPECT_THAT(refusal({"no.such"}), HasSubstr("there is no such key"));
  EXPECT_THAT(refusal({"model.hidden_size"}), HasSubstr("another model"));
  EXPECT_EQ(refusal({"model.path"}), "accepted");  // the base of adapters
  for (const char* key : {"lora.r", "lora.target_modules", "lora.modules_to_save", "lora.use_dora"})
    EXPECT_THAT(refusal({key}), HasSubstr("has the tensors of its own value")) << key;
  EXPECT_EQ(refusal({"lora.lora_alpha"}), "accepted");
}

std::string difference(const Config& config, const Settings& now, const Settings& then,
                       const std::vector<std::string>& accepted = {}) {
  try {
    require_same_settings(config, now, then, accepted, "out/checkpoints/step-00000001");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(ResumeSettings, DropoutIsKnownByWhatTrainingDraws) {
  const ChangingRun run;
  const Settings now = run.look();
  Settings then{{"model.attn_pdrop", "0.0"}};  // a run from before, of a family with this field
  for (const auto& setting : now)
    if (!setting.first.ends_with("_dropout")) then.push_back(setting);
  EXPECT_EQ(difference({}, now, then), "");
  std::ifstream file(run.path("config.json"));
  std::string config((std::istreambuf_iterator<char>(file)), {});
  const std::string field = "\"attention_dropout\": 0.0";
  write(run.path("config.json"), config.replace(config.find(field), field.size(), "\"attention_dropout\": 0.25"));
  EXPECT_EQ(changed(now, run.look()), Keys{"model.attention_dropout"});
  EXPECT_THAT(difference({}, run.look(), now), HasSubstr("is 0.25 now, and 0.0 in out/checkpoints"));
  EXPECT_EQ(difference({}, run.look(), then, {"model.attention_dropout"}), "");
}

const std::string small =
    "[job]\noutput_dir='o'\n[model]\npath='m'\n[data]\ntrain=['a.bin']\n[training]\nsteps=1\nseq_len=8\n";

TEST(ResumeSettings, AllDifferencesAreReportedAtOnce) {
  const Settings then{{"optimizer.lr", "0.1"}, {"training.seed", "0"}, {"data.shuffle", "true"}},
      now{{"optimizer.lr", "0.2"}, {"training.seed", "3"}, {"data.shuffle", "true"}};
  const Config config = parse_config(small, "c.toml", {"optimizer.lr=0.2", "training.seed=3"});
  EXPECT_THAT(difference(config, now, then),
              ::testing::AllOf(HasSubstr("--set optimizer.lr=0.2: is 0.2 now, and 0.1 in out/checkpoints"),
                               HasSubstr("--accept-change optimizer.lr"),
                               HasSubstr("\n  and: --set training.seed=3: is 3 now, and 0 in")));
  EXPECT_THAT(difference(config, now, then, {"training.seed"}), ::testing::Not(HasSubstr("seed")));
  EXPECT_EQ(difference(config, now, then, {"training.seed", "optimizer.lr"}), "");
  EXPECT_EQ(accepted_changes(config, now, then, {"training.seed", "data.shuffle"}), "training.seed 0 -> 3");
}

// Settings that follow from its name are not reported, and no change is offered that the states would refuse.
TEST(ResumeSettings, AnotherOptimizerIsReportedByName) {
  const Settings then{{"optimizer.betas", "[0.9, 0.95]"}, {"optimizer.eps", "1e-08"}, {"optimizer.name", "\"adamw\""}},
      now{{"optimizer.betas", "[0.9, 0.99]"}, {"optimizer.name", "\"lion\""}};
  const Config config = parse_config(small, "c.toml", {"optimizer.name=lion"});
  const std::string said = difference(config, now, then);
  EXPECT_THAT(said,
              ::testing::StartsWith("--set optimizer.name=lion: is \"lion\" now, and \"adamw\" in out/checkpoints"));
  EXPECT_THAT(said,
              ::testing::Not(::testing::AnyOf(HasSubstr("betas"), HasSubstr("eps"), HasSubstr("--accept-change"))));
  const Config given = parse_config(small, "c.toml", {"optimizer.name=lion", "optimizer.betas=[0.9, 0.99]"});
  EXPECT_THAT(difference(given, now, then), HasSubstr("\n  and: --set optimizer.betas"));
}

// Its default is what the rule did before there was the setting.
TEST(ResumeSettings, ASettingThatACheckpointLacksHasTheOptimizersDefault) {
  const Settings then{{"optimizer.name", "\"lion\""}}, same{{"optimizer.betas", "[0.9, 0.99]"}, then.front()},
      other{{"optimizer.betas", "[0.9, 0.5]"}, then.front()};
  EXPECT_EQ(difference(parse_config(small, "c.toml", {"optimizer.name=lion"}), same, then), "");
  const Config given = parse_config(small, "c.toml", {"optimizer.name=lion", "optimizer.betas=[0.9, 0.5]"});
  EXPECT_THAT(difference(given, other, then),
              HasSubstr("betas=[0.9, 0.5]: is [0.9, 0.5] now, and [0.9, 0.99] in out/"));
}

// A checkpoint from before the key has states in fp32. How masters are stored is free.
TEST(ResumeSettings, TheTypeOfStatesMustAgree) {
  const auto at = [](const std::vector<std::string>& overrides) { return parse_config(small, "c.toml", overrides); };
  const Settings fp32{{"optimizer.state_dtype", "\"fp32\""}}, bf16{{"optimizer.state_dtype", "\"bf16\""}};
  EXPECT_EQ(difference(at({}), fp32, {}), "");
  const Config config = at({"optimizer.state_dtype=bf16"});
  for (const Settings& then : {fp32, Settings()})
    EXPECT_EQ(
        difference(config, bf16, then),
        "--set optimizer.state_dtype=bf16: is \"bf16\" now, and \"fp32\" in out/checkpoints/step-00000001: states in "
        "one type are not read as another: go on with \"fp32\", or begin a run with its weights (zero_export)");
  EXPECT_EQ(other_changes(at({"optimizer.master_dtype=split"}), at({})),
            "optimizer.master_dtype \"fp32\" -> \"split\"");
}

TEST(ResumeSettings, GroupsAreReportedByNumberAndKey) {
  const std::string group = "[[optimizer.group]]\nmatch = '*norm*'\nlr = ";
  const Config config = parse_config(small + group + "0.25\n", "c.toml"),
               before = parse_config(small + group + "0.5\n", "b");
  const Settings now{{"optimizer.group", groups_toml(config.optimizer)}},
      then{{"optimizer.group", groups_toml(before.optimizer)}};
  const std::string said = difference(config, now, then);
  EXPECT_THAT(said, HasSubstr("c.toml:10: [[optimizer.group]]: differs from out/checkpoints/step-00000001: group 1 "
                              "(c.toml:10): lr 0.25 now, 0.5 then: "));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 0);
  EXPECT_EQ(accepted_changes(config, now, then, {"optimizer.group"}),
            "optimizer.group: group 1 (c.toml:10): lr 0.25 now, 0.5 then");
  EXPECT_THAT(difference(config, now, {}), HasSubstr("there now, not then"));
}

TEST(ResumeSettings, AnAdapterThatComesOrGoesIsOneDifference) {
  const Settings adapter{
      {"lora.lora_alpha", "16.0"}, {"lora.r", "8"}, {"lora.use_dora", "false"}, {"model.path", "7 bytes, 08d7"}};
  const Config config = parse_config(small, "c.toml");
  EXPECT_EQ(
      difference(config, {}, adapter),
      "c.toml: has no [lora], and out/checkpoints/step-00000001 is of an adapter: give the section that it had, or "
      "begin another run");
  const Config overridden = parse_config(small, "c.toml", {"lora.r=8"});
  EXPECT_EQ(difference(overridden, adapter, {}),
            "--set lora.r=8: begins an adapter, and out/checkpoints/step-00000001 is of all weights: leave it out, or "
            "begin another run");
  EXPECT_EQ(difference(config, adapter, {}),
            "c.toml: has [lora], and out/checkpoints/step-00000001 is of all weights: leave the section out, or begin "
            "another run");
}

TEST(ResumeSettings, TheOrderOfModulesDoesNotCount) {
  const auto differs = [](const char* now, const char* then) {
    return difference({}, {{"lora.target_modules", now}}, {{"lora.target_modules", then}});
  };
  EXPECT_EQ(differs(R"(["v_proj", "q_proj", "v_proj"])", R"(["q_proj", "v_proj"])"), "");
  EXPECT_THAT(differs(R"(["v_proj"])", R"(["q_proj", "v_proj"])"), Not(HasSubstr("--accept-change")));
  EXPECT_THAT(differs(R"("all-linear")", R"(["q_proj"])"), HasSubstr("all-linear"));
}

TEST(ResumeSettings, AKeyThatFollowsFromAnotherIsReportedByThat) {
  const TemporaryFolder folder;
  write(folder / "config.toml", small);
  const std::string place = "job.output_dir=" + folder.path();
  const auto differs = [&](const std::vector<std::string>& overrides) {
    return difference(parse_config(small, "c.toml", overrides), {{"model.head_dim", "48"}}, {{"model.head_dim", "16"}});
  };
  EXPECT_THAT(differs({place, "model.path=n"}),
              AllOf(HasSubstr("--set model.path=n: model.head_dim is 48 now, and 16 in"), Not(HasSubstr("own"))));
  EXPECT_THAT(differs({place}), AllOf(HasSubstr("c.toml:4: [model] path = \"m\": model.head_dim is 48"),
                                      HasSubstr("resume by the run's own " + folder.path())));
}

TEST(ResumeSettings, ChangesToReproducibilityAreReported) {
  const Config now = parse_config(small, "c.toml", {"job.output_dir=elsewhere"});
  const Config then = parse_config(small, "c.toml", {"job.reproducible=ranks", "job.reproducible_rows=2"});
  EXPECT_EQ(other_changes(now, then), "job.reproducible \"ranks\" -> \"none\", job.reproducible_rows 2 -> 1");
}

TEST(ResumeSettings, ChangesOfProcessorAndThreadsAreReported) {
  RunDescription then, now;
  now.ranks = 4;
  now.threads = 2;
  now.processor = "B 2";
  EXPECT_EQ(place_changes(now, then), "ranks 1 -> 4");  // of an earlier version
  then = now;
  EXPECT_EQ(place_changes(now, then), "");
  then.threads = 1;
  then.processor = "A";
  EXPECT_EQ(place_changes(now, then), "threads of a rank 1 -> 2, processor A -> B 2");
  now.threads = 1;
  now.processor = "";
  EXPECT_EQ(place_changes(now, then), "processor A -> one of no name");
}

TEST(ResumeSettings, AFileRecordedInAnOlderFormMayBeAccepted) {
  const Settings now{{"model.path", "7 bytes, SHA-256 by pieces 08d71c2c33e1"}};
  const auto differs = [&](const std::string& then, const std::vector<std::string>& accepted = {}) {
    return difference(Config(), now, {{"model.path", then}}, accepted);
  };
  EXPECT_THAT(differs("7 bytes, 77d71c2c33e1"),
              ::testing::AllOf(HasSubstr("--accept-change model.path"), HasSubstr("in another way: accept it")));
  EXPECT_THAT(differs("7 bytes, SHA-256 by pieces 77d71c2c33e1"), ::testing::Not(HasSubstr("in another way")));
  EXPECT_THAT(differs("7 bytes, SHA-256 by pieces 77d71c2c33e1"),
              HasSubstr("(size and checksum: 7 bytes, 08d71c2c33e1 now, 7 bytes, 77d71c2c33e1 then): name the files"));
  EXPECT_EQ(differs("7 bytes, 77d71c2c33e1", {"model.path"}), "");
  EXPECT_EQ(differs(now[0].second), "");
}

}  // namespace resume_settings_test
}  // namespace zero
