#include "base/files/new_file.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/json_text.h"
#include "tests/sim/memory_disk.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::CallPlan;
using ::testing::HasSubstr;
using testing::MemoryDisk;

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

const std::string older = "older", newer(3000, 'n');

/// Writes /disk/a in two chunks.
void write(MemoryDisk& disk, const std::string& content, CallPlan* plan = nullptr) {
  NewFile file("/disk/a", 0644, disk.calls(plan));
  const auto half = static_cast<std::int64_t>(content.size() / 2);
  file.append(content.data(), half);
  file.append(content.data() + half, static_cast<std::int64_t>(content.size()) - half);
  file.publish();
}

std::string content_of(MemoryDisk& disk) {
  const auto& bytes = disk.content("/disk/a");
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(NewFile, ALossOfPowerLeavesTheOlderFileOrTheNewerWhole) {
  MemoryDisk disk("/disk");
  write(disk, older);
  std::mt19937 random(5);
  std::set<std::string> found;
  disk.observer = [&](const MemoryDisk& now) {
    for (int i = 0; i < 100; ++i) {
      MemoryDisk left = now.after_power_loss(random);
      found.insert(content_of(left));
    }
  };
  write(disk, newer);
  EXPECT_EQ(found, (std::set<std::string>{older, newer}));
  for (int i = 0; i < 100; ++i) {
    MemoryDisk left = disk.after_power_loss(random);
    EXPECT_EQ(content_of(left), newer);
  }
}

TEST(NewFile, ACallThatFailsIsAMessageAndLeavesTheOlderFileAlone) {
  constexpr int calls = 6;  // make, write twice, sync, close, rename; that the folder is not synced is no error
  for (int call = 0; call <= calls; ++call) {
    MemoryDisk disk("/disk");
    write(disk, older);
    CallPlan plan{.fail_at = call, .fail_with = ENOSPC};
    try {
      write(disk, newer, &plan);
      EXPECT_EQ(call, calls);
    } catch (const Error& error) {
      EXPECT_LT(call, calls);
      EXPECT_THAT(error.what(), AllOf(HasSubstr("/disk/a"), HasSubstr("No space left"), HasSubstr("free some space")));
    }
    EXPECT_EQ(content_of(disk), call < calls ? older : newer) << call;
    EXPECT_EQ(disk.files(), std::vector<std::string>{"/disk/a"}) << call;
  }
}

TEST(NewFile, GoesOnAfterASignalAndAWriteOfAPart) {
  MemoryDisk disk("/disk");
  CallPlan plan{.fail_at = 3, .fail_with = EINTR, .short_writes_of = 700};
  write(disk, newer, &plan);
  EXPECT_EQ(content_of(disk), newer);
}

}  // namespace
}  // namespace zero
