#include "base/files/lookup.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/files/file.h"
#include "tests/sim/memory_disk.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::CallPlan;
using ::testing::ElementsAre;
using testing::Fails;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MemoryDisk;

constexpr int passing[] = {EIO, ESTALE, EMFILE, ENFILE, EACCES, EPERM, ENOMEM, ETIMEDOUT, EAGAIN};

MemoryDisk disk_with_a_file() {
  MemoryDisk disk("/disk");
  const auto calls = disk.calls();
  const int file = calls->create("/disk/a", 0644, false);
  calls->write(file, "abc", 3, 0);
  calls->close(file);
  return disk;
}

// An existing file is neither absent nor empty, whatever the calls say.
TEST(Lookups, AnErrorIsNoAbsence) {
  MemoryDisk disk = disk_with_a_file();
  for (const int reason : passing) {
    CallPlan plan{.fail_at = 0, .fail_with = reason, .fails = Fails::for_good};
    const auto calls = disk.calls(&plan);
    const auto reads = [&] {
      char bytes[3];
      File::open("/disk/a", *calls).read_at(bytes, 3, 0);
    };
    EXPECT_THAT(message_of<UnreadableError>([&] { names_in("/disk", *calls); }),
                AllOf(HasSubstr("/disk: cannot be listed: "), HasSubstr(std::strerror(reason))));
    EXPECT_THAT(message_of<UnreadableError>([&] { facts_of("/disk/a", *calls); }),
                AllOf(HasSubstr("/disk/a: cannot be looked at: "), HasSubstr(std::strerror(reason))));
    EXPECT_THAT(message_of<UnreadableError>(reads), HasSubstr("/disk/a: cannot be read: "));
    EXPECT_GT(plan.failed, 3) << "nothing was tried again";
  }
}

TEST(Lookups, AnErrorThatPassesIsNotNoticed) {
  MemoryDisk disk = disk_with_a_file();
  for (const int reason : passing)
    for (int call = 0; call < 3; ++call) {
      CallPlan plan{.reason_of = [&](int number) { return number / 3 == call ? reason : 0; }};
      const auto calls = disk.calls(&plan);
      EXPECT_THAT(names_in("/disk", *calls), ElementsAre("a"));
      EXPECT_EQ(facts_of("/disk/a", *calls).bytes, 3);
      char bytes[3];
      File::open("/disk/a", *calls).read_at(bytes, 3, 0);
      EXPECT_EQ(std::string(bytes, 3), "abc");
    }
}

TEST(Lookups, AnAbsentPathIsNotRetried) {
  MemoryDisk disk("/disk");
  CallPlan plan;
  int asked = 0;
  plan.reason_of = [&](int) { return ++asked, 0; };
  const auto calls = disk.calls(&plan);
  EXPECT_THAT(names_in("/disk/none", *calls), IsEmpty());
  EXPECT_EQ(facts_of("/disk/none", *calls).kind, FileFacts::Kind::absent);
  EXPECT_THROW(File::open("/disk/none", *calls), UnreadableError);
  EXPECT_EQ(asked, 3);
}

TEST(Lookups, ALockIsTriedAgainUntilThereIsAnAnswer) {
  MemoryDisk disk("/disk");
  const auto lock = [&](int reason, Fails fails, int& failed) {
    CallPlan plan{.fail_at = 0, .fail_with = reason, .fails = fails};
    const auto calls = disk.calls(&plan);
    const int file = lock_folder("/disk", *calls), answer = errno;
    failed = plan.failed;
    return file >= 0 ? 0 : answer;
  };
  int failed = 0;
  EXPECT_THAT(message_of<UnreadableError>([&] { lock(EIO, Fails::for_good, failed); }),
              AllOf(HasSubstr("/disk: cannot be locked: "), HasSubstr(std::strerror(EIO)), HasSubstr("three seconds")));
  EXPECT_EQ(lock(ESTALE, Fails::once, failed), 0);
  for (const int answer : {EWOULDBLOCK, ENOLCK, ENOSYS, ENOTSUP, ENOENT}) {
    EXPECT_EQ(lock(answer, Fails::for_good, failed), answer);
    EXPECT_EQ(failed, 1) << answer;
  }
}

TEST(Lookups, KnowFilesFoldersAndLinks) {
  const TemporaryFolder folder;
  folder.write("b", "12345");
  fs::create_directory(folder / "a");
  fs::create_symlink("b", folder / "link");
  fs::create_symlink("nowhere", folder / "dangling");
  fs::create_hard_link(folder / "b", folder / "c");
  EXPECT_THAT(names_in(folder.path()), ElementsAre("a", "b", "c", "dangling", "link"));
  EXPECT_TRUE(is_file(folder / "b") && is_file(folder / "link") && is_folder(folder / "a"));
  EXPECT_FALSE(is_there(folder / "dangling") || is_there(folder / "b/below") || is_file(folder / "a"));
  EXPECT_EQ(facts_of(folder / "link").bytes, 5);
  EXPECT_EQ(facts_of(folder / "link", Links::kept).kind, FileFacts::Kind::link);
  FileCalls calls;
  EXPECT_EQ(File::open(folder / "link", calls).owner(), ::geteuid());
  EXPECT_THROW(File::open(folder / "link", calls, Links::kept), UnreadableError);
  EXPECT_EQ(File::open(folder / "b", calls, Links::kept).size(), 5);
  EXPECT_TRUE(is_same_place(folder / "b", folder / "c") && is_same_place(folder / "b", folder / "link"));
  EXPECT_FALSE(is_same_place(folder / "b", folder / "a") || is_same_place(folder / "no", folder / "no"));
  EXPECT_EQ(real_path(folder / "a/../link"), real_path(folder / "b"));
  EXPECT_EQ(real_path(folder / "nowhere/x"), real_path(folder.path()) + "/nowhere/x");
}

}  // namespace
}  // namespace zero
