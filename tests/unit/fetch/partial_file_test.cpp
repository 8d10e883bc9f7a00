#include "zero/fetch/partial_file.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <string_view>

#include "base/error.h"
#include "tests/sim/memory_disk.h"
#include "tests/unit/message_of.h"
#include "zero/fetch/fetch_progress.h"

namespace zero {
namespace {

using testing::CallPlan;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MemoryDisk;

const HubFile hello{"a.txt", 6, "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"};

std::string text_of(MemoryDisk& disk, const std::string& path) {
  const auto& content = disk.content(path);
  return {reinterpret_cast<const char*>(content.data()), content.size()};
}

TEST(PartialFile, GoesOnInAnotherProcessAndIsPublishedWhole) {
  MemoryDisk disk("/d");
  const auto calls = disk.calls();
  {
    PartialFile file(*calls, "/d/part", hello);
    file.begin(0);
    file.add("hel");
  }
  EXPECT_THAT(disk.files(), ElementsAre("/d/part"));
  PartialFile file(*calls, "/d/part", hello);
  EXPECT_EQ(file.bytes(), 3);
  file.begin(3);
  file.add("lo\n");
  EXPECT_EQ(file.hash(), hello.hash);
  file.publish("/d/a.txt");
  EXPECT_THAT(disk.files(), ElementsAre("/d/a.txt"));
  std::mt19937 random(1);
  for (int i = 0; i < 20; ++i) {
    MemoryDisk after = disk.after_power_loss(random);
    EXPECT_EQ(text_of(after, "/d/a.txt"), "hello\n");
  }
}

TEST(PartialFile, BeginsAnewWhereTheServerDoes) {
  MemoryDisk disk("/d");
  const auto calls = disk.calls();
  PartialFile file(*calls, "/d/part", hello);
  file.begin(0);
  file.add("xyz");
  file.begin(0);
  file.add("hello\n");
  EXPECT_EQ(file.hash(), hello.hash);
  EXPECT_EQ(text_of(disk, "/d/part"), "hello\n");
}

TEST(PartialFile, TakesNoOtherBytesThanThoseThatAreMissing) {
  MemoryDisk disk("/d");
  const auto calls = disk.calls();
  PartialFile file(*calls, "/d/part", hello);
  EXPECT_THAT(message_of<Error>([&] { file.begin(2); }), HasSubstr("bytes from 2 on"));
  EXPECT_THAT(message_of<Error>([&] { file.add("hello world"); }), HasSubstr("more than the 6 bytes"));
  EXPECT_EQ(file.bytes(), 0);
}

TEST(PartialFile, LeavesNothingWithoutAByteOrWhenDiscarded) {
  MemoryDisk disk("/d");
  const auto calls = disk.calls();
  { PartialFile file(*calls, "/d/part", hello); }
  EXPECT_THAT(disk.files(), IsEmpty());
  PartialFile file(*calls, "/d/part", hello);
  file.add("hel");
  file.discard();
  EXPECT_THAT(disk.files(), IsEmpty());
}

TEST(PartialFile, LongerThanItsFileBeginsAnew) {
  MemoryDisk disk("/d");
  const auto calls = disk.calls();
  const HubFile longer{"a.txt", 9, hello.hash};
  { PartialFile(*calls, "/d/part", longer).add("too long"); }
  EXPECT_EQ(PartialFile(*calls, "/d/part", hello).bytes(), 0);
}

// Whichever call fails: the final name has the whole content or is free.
TEST(PartialFile, HasNoHalfUnderItsNameOnADiskThatFails) {
  int failed = 0;
  for (int at = 0; at < 20; ++at) {
    MemoryDisk disk("/d");
    CallPlan plan{.fail_at = at, .fail_with = ENOSPC};
    const auto calls = disk.calls(&plan);
    try {
      PartialFile file(*calls, "/d/part", hello);
      file.add("hel");
      file.add("lo\n");
      file.publish("/d/a.txt");
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("No space left"));
      ++failed;
    }
    const std::vector<std::string> files = disk.files();
    if (std::find(files.begin(), files.end(), "/d/a.txt") == files.end()) continue;
    EXPECT_EQ(text_of(disk, "/d/a.txt"), "hello\n") << at;
  }
  EXPECT_GE(failed, 7);  // open, look twice, two writes, sync, close, rename
}

TEST(FetchLine, HasTheRateAndFitsTheTerminal) {
  EXPECT_EQ(fetch_line("a.bin", 1 << 20, 4 << 20, 1 << 20, 0), "a.bin  1.0 MiB of 4.0 MiB  1.0 MiB/s  0:03 left");
  EXPECT_EQ(fetch_line("a.bin", 0, 1024, 0, 0), "a.bin  0.0 KiB of 1.0 KiB");
  EXPECT_EQ(fetch_line("folder/a.bin", 0, 1024, 0, 25), "a.bin  0.0 KiB of 1.0 KiB");
  EXPECT_EQ(fetch_line("a.bin", 0, 1024, 0, 10), "  0.0 KiB ");
}

}  // namespace
}  // namespace zero
