#include "zero/fetch/listing.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "tests/unit/message_of.h"
#include "zero/fetch/content_hash.h"

namespace zero {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const std::string git(40, 'a'), sha(64, 'b');

TEST(Listing, HasFilesWithTheHashOfTheirContent) {
  const auto files = parse_tree(R"([{"type": "directory", "oid": ")" + git + R"(", "size": 0, "path": "d"},
      {"type": "file", "oid": ")" + git +
                                    R"(", "size": 3, "path": "d/a.json"},
      {"type": "file", "oid": ")" + git +
                                    R"(", "size": 134, "path": "b", "xetHash": "x",
       "lfs": {"oid": ")" + sha + R"(", "size": 5000000000, "pointerSize": 134}}])",
                                "here");
  ASSERT_THAT(files, SizeIs(2));
  EXPECT_EQ(files[0].path, "d/a.json");
  EXPECT_EQ(files[0].bytes, 3);
  EXPECT_EQ(files[0].hash, git);
  EXPECT_FALSE(files[0].has_sha256());
  EXPECT_EQ(files[1].bytes, 5'000'000'000);
  EXPECT_EQ(files[1].hash, sha);
  EXPECT_TRUE(files[1].has_sha256());
}

TEST(Listing, IsReadAsHostileInput) {
  const auto refused = [](const std::string& words) { return message_of<Error>([&] { parse_tree(words, "here"); }); };
  for (const std::string& words :
       {std::string("{}"), std::string("[1]"), std::string("["), std::string("[]]"), std::string(R"([{"type": 1}])"),
        std::string(R"([{"type": "file", "path": "a", "size": 1, "oid": "../../x"}])"),
        R"([{"type": "file", "path": "a", "size": -1, "oid": ")" + git + R"("}])",
        R"([{"type": "file", "path": "a", "size": 1.5, "oid": ")" + git + R"("}])",
        R"([{"type": "file", "path": "a", "size": 1, "oid": ")" + git + R"(", "lfs": {"oid": ")" + git + R"("}}])"})
    EXPECT_THAT(refused(words), HasSubstr("here")) << words;
  EXPECT_THAT(refused(R"([{"type": "file", "path": "../x", "size": 1, "oid": ")" + git + R"("}])"),
              AllOf(HasSubstr(R"("../x")"), HasSubstr("nothing of this repository")));
  EXPECT_THROW(require_distinct({{"a", 1, git}, {"b", 1, git}, {"a", 1, git}}, "here"), Error);
}

TEST(Listing, NamesTheCommit) {
  EXPECT_EQ(parse_commit(R"({"sha": ")" + git + R"("})", "here"), git);
  for (const char* words : {"[]", "{}", R"({"sha": "main"})", R"({"sha": 3})", "<html>"})
    EXPECT_THAT(message_of<Error>([&] { parse_commit(words, "here"); }), HasSubstr("here")) << words;
}

TEST(Listing, NamesTheNextPage) {
  EXPECT_EQ(next_page_of(R"(<https://h/a?cursor=b,c>; rel="next")"), "https://h/a?cursor=b,c");
  EXPECT_EQ(next_page_of(R"(<https://h/0>; rel="prev", <https://h/2>; rel="next")"), "https://h/2");
  for (const char* words : {"", "<https://h/0>; rel=\"prev\"", "<https://h", "rel=\"next\"", "<<<"})
    EXPECT_EQ(next_page_of(words), "") << words;
}

// `git hash-object` and `sha256sum` give these.
TEST(ContentHash, IsThatOfTheHub) {
  const HubFile of_git{"a", 6, git}, of_lfs{"a", 6, sha};
  ContentHash one(of_git), other(of_lfs), empty({"a", 0, git});
  for (const char* part : {"hel", "lo\n"}) {
    one.add(part, 3);
    other.add(part, 3);
  }
  EXPECT_EQ(one.finish(), "ce013625030ba8dba906f756967f9e9ca394464a");
  EXPECT_EQ(other.finish(), "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03");
  EXPECT_EQ(empty.finish(), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
}

}  // namespace
}  // namespace zero
