#include "base/files/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/json_text.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace {

// A copy belongs to this process's group, even if another group may read the original.
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
