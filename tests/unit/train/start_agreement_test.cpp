#include "zero/train/start_agreement.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "base/error.h"
#include "base/json_text.h"
#include "comm/sim/sim_world.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"
#include "zero/config/config_keys.h"
#include "zero/config/optimizer_settings.h"

namespace zero {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(StartAgreement, ReportsDifferencesAndTheirRanks) {
  SimWorld(4).run([](Communicator& ranks, int rank) {
    const std::vector<StartFact> same{{"a", "1"}, {"b", "2"}, {"c", "3"}};
    check_same_start(same, ranks);
    std::vector<StartFact> mine = same;
    if (rank == 1 || rank == 3) mine[1].value = "7";
    if (rank == 2) mine = {{"a", "1"}, {"b", "2"}, {"d", "\xff\"" + std::string(500, 'x')}};
    const std::string told = message_of<InputError>([&] { check_same_start(mine, ranks); });
    EXPECT_THAT(
        told, AllOf(HasSubstr("\n  b: 2 on rank 0, 7 on ranks 1, 3"), HasSubstr("\n  c: 3 on rank 0, absent on rank 2"),
                    HasSubstr("\n  d: absent on rank 0, "), Not(HasSubstr("\n  a:"))));
    EXPECT_LT(told.size(), 600u);
  });
}

// The name of a file next to a model may consist of any bytes.
TEST(StartAgreement, TakesNamesThatAreNoText) {
  const std::vector<StartFact> facts{{"the file caf\xe9.txt", "4 bytes"}};
  SimWorld(3).run([&](Communicator& ranks, int) { check_same_start(facts, ranks); });
}

// But for a folder that may be each node's own.
TEST(StartAgreement, EveryKeyThatARunReadsIsAFact) {
  Config config = parse_config(
      "[job]\noutput_dir = \"out\"\n[model]\npreset = \"llama-tiny\"\n[data]\ntrain = [\"t.bin\"]\n"
      "[training]\nsteps = 3\nseq_len = 4\n[lora]\nr = 4\n",
      "run.toml");
  std::vector<std::string> facts;
  for (const StartFact& fact : start_facts(config, {})) facts.push_back(fact.name);
  int keys = 0;
  for (const ConfigKey& key : config_keys()) {
    if (key.full_name() == "offload.nvme_dir" || !is_read(config, key) || !read_field(key.field(config))) continue;
    ++keys;
    EXPECT_EQ(std::ranges::count(facts, key.full_name()), 1) << key.full_name();
  }
  EXPECT_GT(keys, 60);
}

TEST(StartAgreement, FactsAreKeysAndTheEndsOfFiles) {
  const TemporaryFolder folder;
  const std::string tokens(300'000, 'x');
  write_text_file(folder / "t.bin", tokens);
  write_text_file(folder / "c.toml",
                  "[job]\noutput_dir = \"out\"\n[model]\npreset = \"llama-tiny\"\n[data]\ntrain = [\"" +
                      (folder / "t.bin") +
                      "\"]\n[training]\nsteps = 3\nseq_len = 4\n[offload]\noptimizer = \"nvme\"\nnvme_dir = "
                      "\"/mnt/own\"\n[[optimizer.group]]\nmatch = [\"a\"]\nlr = 1.0\n");
  const auto facts = [&](const std::vector<std::string>& overrides) {
    return start_facts(load_config(folder / "c.toml", overrides), {});
  };
  const auto changed = [&](const std::vector<StartFact>& a, const std::vector<StartFact>& b) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
      if (a[i].name != b[i].name || a[i].value != b[i].value) names.push_back(a[i].name);
    return names;
  };
  const auto before = facts({});
  EXPECT_THAT(changed(before, facts({})), ::testing::IsEmpty());
  EXPECT_THAT(changed(before, facts({"optimizer.lr=1e-7"})), ::testing::ElementsAre("optimizer.lr"));
  EXPECT_THAT(changed(before, facts({"offload.nvme_dir=/mnt/other"})), ::testing::IsEmpty());
  EXPECT_TRUE(
      std::any_of(before.begin(), before.end(), [](const StartFact& f) { return f.name == "optimizer.group[0].lr"; }));
  for (const std::size_t place : {std::size_t{0}, tokens.size() - 1}) {
    std::string other = tokens;
    other[place] = 'y';
    write_text_file(folder / "t.bin", other);
    EXPECT_THAT(changed(before, facts({})), ::testing::ElementsAre(HasSubstr("t.bin (data.train")));
  }
  write_text_file(folder / "t.bin", tokens + "x");
  EXPECT_THAT(changed(before, facts({})), ::testing::ElementsAre(HasSubstr("t.bin")));
}

}  // namespace
}  // namespace zero
