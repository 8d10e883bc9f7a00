#include "zero/estimate/legal_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "zero/config/setup.h"

namespace zero {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// ZERO_WRITE_DOCS=1 writes the page anew.
TEST(LegalLayout, ThePageIsMadeByIt) {
  const std::string path = std::string(ZERO_TEST_DATA) + "/../../docs/results/layouts.md";
  const std::string page =
      "# Which layouts are legal\n\n"
      "`judge_layout()` (`zero/estimate/legal_layout.h`) makes these tables, and a test compares them. It\n"
      "applies the rules of the configuration and makes one rank's engine without memory.\n\n"
      "Features by axes, for the preset llama-110m (12 heads, 12 blocks). A cell is \"yes\" or the key that\n"
      "refuses:\n\n" +
      layout_table() +
      "\nLayouts of llama-15m (6 heads, 6 blocks) that are refused, with the messages that a run ends with\n"
      "and the nearest change that is legal:\n\n" +
      refused_layouts();
  if (std::getenv("ZERO_WRITE_DOCS")) std::ofstream(path) << page;
  std::ifstream file(path);
  std::stringstream written;
  written << file.rdbuf();
  EXPECT_EQ(written.str(), page) << "ZERO_WRITE_DOCS=1 writes " << path << " anew";
  EXPECT_THAT(page, Not(HasSubstr("LEGAL")));
}

TEST(LegalLayout, TheNearestOneIsLegal) {
  Config config = parse_config(
      "[job]\noutput_dir = \"out\"\n[data]\ntrain = [\"a.bin\"]\n[training]\nsteps = 10\nseq_len = 64\n"
      "[model]\npreset = \"llama-15m\"\n",
      "c.toml");
  config.parallel.tensor = 4;
  const LayoutVerdict verdict = judge_layout(config, model_config_of(config), 8);
  EXPECT_THAT(verdict.why, HasSubstr("attention heads"));
  EXPECT_EQ(verdict.nearest, "parallel.tensor=2");
  config.parallel.tensor = 2;
  EXPECT_TRUE(judge_layout(config, model_config_of(config), 8).is_legal());
}

}  // namespace
}  // namespace zero
