#include "zero/output/sample_lines.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace {

TEST(SampleLines, HavePromptAndContinuation) {
  const auto line = sample_of_line(R"({"version":1,"step":4,"prompt":"God \"said\"","text":"let\n","ids":[1,2]})");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->step, 4);
  EXPECT_EQ(line->sample, (Sample{"God \"said\"", "let\n"}));
}

TEST(SampleLines, ShowAConversationByItsRoles) {
  const auto line = sample_of_line(
      R"({"step":4,"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[1]},{"odd":1}],"text":"x"})");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->sample.prompt, "system: Be brief.\nuser: [1]\n{\"odd\":1}");
}

TEST(SampleLines, ThatAreDamagedAreNone) {
  for (const char* words :
       {"", "{", "[]", "1", R"({"step":1,"prompt":"a"})", R"({"prompt":"a","text":"b"})",
        R"({"step":"1","prompt":"a","text":"b"})", R"({"step":1,"prompt":1,"text":"b"})",
        R"({"step":1,"messages":"a","text":"b"})", "{\"step\":1,\"prompt\":\"\xff\",\"text\":\"\"}"})
    EXPECT_FALSE(sample_of_line(words)) << words;
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_TRUE(sample_of_line(R"({"step":1,"prompt":"a","text":"b","more":)" + deep + "}"));
}

TEST(SampleLines, AreReadAsFarAsTheyAreWritten) {
  const TemporaryFolder folder;
  EXPECT_TRUE(samples_after(samples_path(folder.path()), 0).empty());
  folder.write("samples.jsonl",
               "{\"step\":2,\"prompt\":\"a\",\"text\":\"1\"}\n{\"step\":4,\"prompt\":\"a\",\"text\":\"2\"}\nwords\n"
               "{\"step\":4,\"prompt\":\"b\",\"text\":\"3\"}\n{\"step\":6,\"prompt\":\"a\",\"te");
  const SamplesByStep samples = samples_after(samples_path(folder.path()), 2);
  EXPECT_EQ(samples, (SamplesByStep{{4, {{"a", "2"}, {"b", "3"}}}}));
}

}  // namespace
}  // namespace zero
