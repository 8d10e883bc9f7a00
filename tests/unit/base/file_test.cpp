#include "base/file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/json_text.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_in(const TemporaryFolder& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder.path())) names.push_back(entry.path().filename().string());
  return names;
}

TEST(NewFile, HasATemporaryNameThatIsAnotherEachTimeAndKnown) {
  const TemporaryFolder folder;
  std::string names[2];
  for (std::string& name : names) {
    const NewFile file(folder / "a");
    ASSERT_EQ(names_in(folder).size(), 1U);
    name = names_in(folder).front();
    EXPECT_TRUE(is_unpublished(name)) << name;
  }
  EXPECT_NE(names[0], names[1]);
  EXPECT_TRUE(names_in(folder).empty());
  for (const char* name : {"a.tmp-12", "a", ".tmp-", "a.tmp-000000000000000g", "atmp-0000000000000000"})
    EXPECT_FALSE(is_unpublished(name)) << name;
}

TEST(NewFile, ReplacesALinkAndNotWhatItLeadsTo) {
  const TemporaryFolder folder;
  write_text_file(folder / "other", "untouched");
  fs::create_symlink("other", folder / "a");
  write_text_file(folder / "a", "new");
  EXPECT_EQ(read_text_file(folder / "other"), "untouched");
  EXPECT_EQ(read_text_file(folder / "a"), "new");
  EXPECT_FALSE(fs::is_symlink(fs::path(folder / "a")));
}

TEST(NewFile, HasThePermissionsAskedForAndWritesOverItsBeginning) {
  const TemporaryFolder folder;
  NewFile file(folder / "a", 0600);
  file.append("....def", 7);
  file.replace("abc", 3, 0);
  file.publish();
  EXPECT_EQ(read_text_file(folder / "a"), "abc.def");
  EXPECT_EQ(fs::status(folder / "a").permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

// What a group may read that this process is not of becomes a file of this process's group elsewhere.
TEST(File, ItsPermissionsLeaveOutAnotherGroup) {
  const TemporaryFolder folder;
  write_text_file(folder / "a", "content");
  ASSERT_EQ(::chmod((folder / "a").c_str(), 0640), 0);
  EXPECT_EQ(File::open(folder / "a").mode(), 0640u);
  if (::chown((folder / "a").c_str(), -1, 54321) != 0) GTEST_SKIP() << "only root gives files to other groups";
  EXPECT_EQ(File::open(folder / "a").mode(), 0600u);
}

TEST(File, KnowsWhenItWasWrittenTo) {
  const TemporaryFolder folder;
  write_text_file(folder / "a", "content");
  const File file = File::open(folder / "a");
  EXPECT_FALSE(file.changed());
  std::fstream(folder / "a", std::ios::in | std::ios::out) << "k";
  EXPECT_TRUE(file.changed());
}

}  // namespace
}  // namespace zero
