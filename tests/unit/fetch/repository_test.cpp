#include "zero/fetch/repository.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "tests/unit/message_of.h"

namespace zero {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Repository model(const std::string& words) { return Repository::parse(words, RepositoryKind::model); }

TEST(Repository, HasANameAndARevision) {
  EXPECT_EQ(model("gpt2").name, "gpt2");
  EXPECT_EQ(model("gpt2").revision, "main");
  const Repository one = model("Org-1/a.b_c@refs/pr/3");
  EXPECT_EQ(one.name, "Org-1/a.b_c");
  EXPECT_EQ(one.revision, "refs/pr/3");
  EXPECT_EQ(one.api_path(), "/api/models/Org-1/a.b_c");
  EXPECT_EQ(one.cache_name(), "models--Org-1--a.b_c");
  const std::string commit(40, 'a');
  EXPECT_EQ(one.file_path(commit, "d/e f%.txt"), "/Org-1/a.b_c/resolve/" + commit + "/d/e%20f%25.txt");
}

TEST(Repository, OfADataSetHasOtherPaths) {
  const Repository texts = Repository::parse("org/texts", RepositoryKind::dataset);
  EXPECT_EQ(texts.api_path(), "/api/datasets/org/texts");
  EXPECT_EQ(texts.file_path("c", "a"), "/datasets/org/texts/resolve/c/a");
  EXPECT_EQ(texts.cache_name(), "datasets--org--texts");
}

TEST(Repository, OtherNamesAreRefusedWithTheRule) {
  for (const char* words :
       {"", "/", "a/", "/a", "a/b/c", "..", "a/..", "a b", "a/b\n", "a--b", "a/b?c", "ä/b", "@main"})
    EXPECT_THAT(message_of<InputError>([&] { model(words); }), HasSubstr("OWNER/NAME")) << words;
  for (const char* words : {"a/b@", "a/b@/x", "a/b@../../x", "a/b@x\ny"})
    EXPECT_THAT(message_of<InputError>([&] { model(words); }), HasSubstr("the revision after @")) << words;
  EXPECT_THAT(message_of<InputError>([] { model("https://huggingface.co/a/b"); }), HasSubstr("after the host"));
  EXPECT_THAT(message_of<InputError>([] { model("datasets/a/b"); }), HasSubstr("--dataset"));
}

TEST(Paths, LeadIntoTheFolder) {
  for (const char* path : {"a", "a/b c/ü.txt", ".gitattributes", "...", "a..b/c"})
    EXPECT_THAT(why_no_path(path), IsEmpty());
  for (const std::string& path : {std::string(), std::string("/a"), std::string(".."), std::string("../a"),
                                  std::string("a/../b"), std::string("a/."), std::string("a//b"), std::string("a/"),
                                  std::string("a\\b"), std::string("a\0b", 3), std::string("a/.git/hooks/x"),
                                  std::string(256, 'x'), std::string(600, 'x').replace(300, 1, "/").append(600, '/')})
    EXPECT_NE(why_no_path(path), "") << path;
}

TEST(Commits, HaveFortyDigits) {
  EXPECT_TRUE(is_commit(std::string(40, '0')));
  for (const std::string& word :
       {std::string(39, '0'), std::string(40, 'A'), std::string(40, 'g'), std::string("main")})
    EXPECT_FALSE(is_commit(word)) << word;
}

}  // namespace
}  // namespace zero
