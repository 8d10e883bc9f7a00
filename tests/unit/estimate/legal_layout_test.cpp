#include "zero/estimate/legal_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "tests/unit/message_of.h"
#include "zero/config/setup.h"
#include "zero/estimate/layout_page.h"

namespace zero {
namespace legal_layout_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// ZERO_WRITE_DOCS=1 writes the page anew.
TEST(LegalLayout, ThePageIsMadeByIt) {
  const std::string path = std::string(ZERO_TEST_DATA) + "/../../docs/results/layouts.md";
  const std::string page =
      "# Which layouts are legal\n\n"
      "`zero/estimate/layout_page.h` makes these tables, and a test compares them. `judge_layout()`\n"
      "(`zero/estimate/legal_layout.h`) applies the rules of the configuration and makes one rank's engine\n"
      "without memory.\n\n"
      "Features by axes, for the preset llama-110m (12 heads, 12 blocks). A cell is \"yes\" or the key that\n"
      "refuses:\n\n" +
      layout_table() +
      "\nLayouts of llama-15m (6 heads, 6 blocks) that are refused. A run ends with the message, and names\n"
      "the changes in the last column, each of which makes the layout legal:\n\n" +
      refused_layouts();
  if (std::getenv("ZERO_WRITE_DOCS")) std::ofstream(path) << page;
  std::ifstream file(path);
  std::stringstream written;
  written << file.rdbuf();
  EXPECT_EQ(written.str(), page) << "ZERO_WRITE_DOCS=1 writes " << path << " anew";
  EXPECT_THAT(page, Not(HasSubstr("LEGAL")));
}

// A model of 6 heads and 6 blocks.
Config config_with(const std::vector<std::string>& settings, Contradictions contradictions) {
  return parse_config(
      "[job]\noutput_dir = \"out\"\n[data]\ntrain = [\"a.bin\"]\n[training]\nsteps = 10\nseq_len = 64\n"
      "[model]\npreset = \"llama-tiny\"\nhidden_size = 96\nnum_attention_heads = 6\nnum_key_value_heads = 6\nnum_hidden_layers = 6\n",
      "c.toml", settings, contradictions);
}

LayoutVerdict judge(const std::vector<std::string>& settings, const LayoutJob& job) {
  const Config config = config_with(settings, Contradictions::allowed);
  return judge_layout(config, model_config_of(config), job);
}

/// Follows a remedy as a user does. Returns the next message; empty if there is none.
std::string why_refused(std::vector<std::string> settings, LayoutJob job, const std::string& remedy) {
  if (std::isdigit(static_cast<unsigned char>(remedy.front()))) job.ranks = std::stoi(remedy);
  std::istringstream words(remedy);
  for (std::string option, value; words >> option >> value;)
    if (option == "--set") settings.push_back(value);
  try {
    const Config config = config_with(settings, Contradictions::refused);
    return why_illegal(config, model_config_of(config), job);
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(LegalLayout, EveryRemedyIsLegal) {
  const std::vector<std::string> interleaved{"zero.stage=1", "parallel.pipeline=2", "parallel.schedule=interleaved"};
  const std::vector<std::string> doubly{"lora.r=4", "lora.quantization=nf4", "lora.double_quantization=true"};
  const auto and_also = [](std::vector<std::string> settings, std::initializer_list<std::string> more) {
    settings.insert(settings.end(), more);
    return settings;
  };
  const std::vector<std::vector<std::string>> layouts{
      {},
      {"parallel.tensor=2"},
      {"parallel.tensor=3"},
      {"parallel.tensor=4"},
      {"parallel.context=4"},
      {"parallel.context=7"},
      {"parallel.tensor=2", "parallel.context=2"},
      {"parallel.tensor=3", "parallel.context=4"},
      {"parallel.pipeline=2"},
      {"parallel.pipeline=8", "zero.stage=1"},
      {"parallel.pipeline=3", "parallel.tensor=2"},
      interleaved,
      and_also(interleaved, {"parallel.chunks=5"}),
      and_also(interleaved, {"model.tie_word_embeddings=true"}),
      {"zero.shard_degree=3"},
      {"zero.shard_degree=2", "parallel.tensor=2"},
      {"job.reproducible=ranks"},
      {"job.reproducible=ranks", "zero.shard_degree=3"},
      {"job.reproducible=ranks", "parallel.tensor=2"},
      {"job.reproducible=ranks", "parallel.context=2", "job.reproducible_rows=2"},
      {"job.reproducible=ranks", "optimizer.name=muon"},
      {"optimizer.name=adamw8bit", "parallel.tensor=2"},
      {"optimizer.name=adamw8bit", "parallel.tensor=3", "parallel.pipeline=2"},
      and_also(doubly, {"parallel.tensor=2"}),
      {"lora.r=4", "lora.quantization=int8", "parallel.tensor=3"},
      {"activation_checkpoint.mlp_tokens=32", "parallel.tensor=2"},
      {"offload.parameters=cpu", "zero.stage=1"},
      {"offload.activations=cpu", "parallel.context=2"}};
  int illegal = 0, remedied = 0;
  for (const std::vector<std::string>& layout : layouts)
    for (const bool small_batch : {false, true})
      for (const int ranks : {1, 2, 3, 6, 7, 8}) {
        std::vector<std::string> settings = layout;
        if (small_batch) settings = and_also(layout, {"training.global_batch_size=9", "training.local_batch_size=2"});
        const LayoutJob job{.ranks = ranks};
        const LayoutVerdict verdict = judge(settings, job);
        illegal += !verdict.is_legal();
        remedied += !verdict.legal.empty();
        EXPECT_FALSE(verdict.is_legal() && !verdict.legal.empty()) << ::testing::PrintToString(settings);
        for (const std::string& remedy : verdict.legal)
          EXPECT_EQ(why_refused(settings, job, remedy), "")
              << ranks << " ranks, " << ::testing::PrintToString(settings) << ": " << verdict.why << ": " << remedy;
      }
  EXPECT_GT(illegal, 100);
  EXPECT_GT(2 * remedied, illegal);
}

TEST(LegalLayout, TheNearestOnesAreNamed) {
  const LayoutVerdict verdict = judge({"parallel.tensor=4", "training.global_batch_size=8"}, {.ranks = 8});
  EXPECT_THAT(verdict.why, HasSubstr("attention heads"));
  EXPECT_THAT(verdict.legal, ElementsAre("--set parallel.tensor=2"));
  EXPECT_EQ(judge({"parallel.tensor=3", "training.global_batch_size=8"}, {.ranks = 8}).remedies(),
            "--set parallel.tensor=2, or 6 ranks, or 12 ranks");
  EXPECT_THAT(judge({"parallel.tensor=2"}, {.ranks = 1, .ranks_option = "--ranks"}).legal,
              ElementsAre("--set parallel.tensor=1", "--ranks 2"));
  EXPECT_THAT(judge({"parallel.tensor=3"}, {.ranks = 8, .ranks_option = "--ranks-per-node", .nodes = 2}).legal,
              ElementsAre("--set parallel.tensor=2", "--ranks-per-node 3", "--ranks-per-node 6"));
}

TEST(LegalLayout, OtherRanksAreThoseThatTheJobMayHave) {
  const std::vector<std::string> settings{"parallel.tensor=3"};
  const std::string tensor = "--set parallel.tensor=2";
  EXPECT_THAT(judge(settings, {.ranks = 8}).legal, ElementsAre(tensor, "6 ranks", "9 ranks"));
  EXPECT_THAT(judge(settings, {.ranks = 8, .on_gpu = true}).legal, ElementsAre(tensor, "6 ranks"));
  EXPECT_THAT(judge(settings, {.ranks = 8, .least_ranks = 8}).legal, ElementsAre(tensor, "9 ranks"));
}

TEST(LegalLayout, APipelineIsLegalOnCpusOnly) {
  const LayoutVerdict verdict = judge({"parallel.pipeline=2", "zero.stage=1"}, {.ranks = 4, .on_gpu = true});
  EXPECT_THAT(verdict.why, HasSubstr("parallel.pipeline=2: runs on CPUs so far"));
  EXPECT_THAT(verdict.legal, ElementsAre("--set parallel.pipeline=1"));
  const std::vector<std::string> stage_3{"parallel.pipeline=2"};
  EXPECT_THAT(judge(stage_3, {.ranks = 4}).legal, Contains("--set zero.stage=2"));
  EXPECT_THAT(judge(stage_3, {.ranks = 4, .on_gpu = true}).legal, ElementsAre("--set parallel.pipeline=1"));
}

TEST(LegalLayout, AResumedRunKeepsItsBatch) {
  const std::vector<std::string> settings{"training.global_batch_size=9", "training.local_batch_size=2"};
  EXPECT_THAT(judge(settings, {.ranks = 1}).legal,
              ElementsAre("--set training.local_batch_size=1", "--set training.global_batch_size=8"));
  EXPECT_THAT(judge(settings, {.ranks = 1, .resumed = true}).legal, ElementsAre("--set training.local_batch_size=1"));
  const LayoutVerdict open = judge({"parallel.tensor=4"}, {.ranks = 8, .resumed = true});
  EXPECT_FALSE(open.is_legal());
  EXPECT_THAT(open.legal, ::testing::IsEmpty());
}

TEST(LegalLayout, ARefusalEndsWithItsRemedies) {
  const auto said = [](const std::string& why, const std::vector<std::string>& legal) {
    return message_of<InputError>([&] {
      check_layout([&] { throw InputError(why); }, [&] { return LayoutVerdict{why, legal}; });
    });
  };
  EXPECT_EQ(said("a", {}), "a");
  EXPECT_EQ(said("a", {"--set b.c=1", "2 ranks"}), "a; legal here: --set b.c=1, or 2 ranks");
  EXPECT_EQ(said("a\n  and: b", {"2 ranks"}), "a\n  and: b\n  legal here: 2 ranks");
  EXPECT_EQ(message_of<InputError>([] {
              check_layout([] { throw InputError("a"); }, []() -> LayoutVerdict { throw InputError("no model"); });
            }),
            "a");
}

}  // namespace legal_layout_test
}  // namespace zero
