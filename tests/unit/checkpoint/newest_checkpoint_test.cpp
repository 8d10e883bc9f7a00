#include "zero/checkpoint/newest_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "base/error.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace newest_checkpoint_test {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Calls `live` before each look at a folder's files, as a run that works beside the reader would act.
class LiveCalls : public FileCalls {
 public:
  int list(const std::string& path, std::vector<std::string>& names) override {
    if (live && fs::path(path).filename().string().starts_with("step-")) live();
    return FileCalls::list(path, names);
  }

  std::function<void()> live;
};

class NewestCheckpointTest : public ::testing::Test {
 protected:
  NewestCheckpointTest() : folders_(calls_, folder_ / "checkpoints") { fs::create_directory(folders_.root()); }

  void write(std::int64_t step, std::int64_t file_bytes = 4) {
    Manifest manifest;
    manifest.position.steps = step;
    manifest.files = {{"rank-00000.states", {}, {4, 0}}};
    const std::string name = folders_.path(step).substr(folder_.path().size() + 1);
    fs::create_directory(folders_.path(step));
    folder_.write(name + "/manifest.json", format_manifest(manifest));
    folder_.write(name + "/rank-00000.states", std::string(std::size_t(file_bytes), 'x'));
  }
  void remove(std::int64_t step) { fs::remove_all(folders_.path(step)); }

  const TemporaryFolder folder_;
  LiveCalls calls_;
  CheckpointFolders folders_;
};

TEST_F(NewestCheckpointTest, PassesOverDamagedAndIncompleteOnes) {
  EXPECT_EQ(newest_checkpoint(folders_, calls_).step(), -1);
  write(3);
  write(6, /*file_bytes=*/3);
  fs::create_directory(folders_.path(9));
  fs::create_directory(folders_.path(1));  // an older one does not matter
  const NewestCheckpoint found = newest_checkpoint(folders_, calls_);
  EXPECT_EQ(found.step(), 3);
  EXPECT_EQ(found.whole->folder, folders_.path(3));
  EXPECT_THAT(
      found.damages,
      ElementsAre(Field(&NewestCheckpoint::Damage::what, HasSubstr("step-00000006/rank-00000.states: has 3 bytes")),
                  Field(&NewestCheckpoint::Damage::what, HasSubstr("step-00000009/manifest.json: is missing"))));
}

TEST_F(NewestCheckpointTest, ForgetsDamagesOfOlderStepsThanThoseOfAnotherFolder) {
  fs::create_directory(folders_.path(3));
  fs::create_directory(folders_.path(9));
  NewestCheckpoint home = newest_checkpoint(folders_, calls_);
  EXPECT_EQ(home.damages.size(), 2U);
  NewestCheckpoint spare;
  spare.whole.emplace().manifest.position.steps = 6;
  home.take(spare);
  EXPECT_EQ(home.step(), 6);
  EXPECT_THAT(home.damages, ElementsAre(Field(&NewestCheckpoint::Damage::step, 9)));
}

TEST_F(NewestCheckpointTest, FollowsARunThatReplacesItsOnlyCheckpoint) {
  for (const int times : {1, 3}) {
    for (const std::int64_t step : folders_.names()) remove(step);
    std::int64_t newest = 1;
    write(newest);
    calls_.live = [&, left = times]() mutable {
      if (left-- <= 0) return;
      remove(newest);
      write(++newest);
    };
    const NewestCheckpoint found = newest_checkpoint(folders_, calls_);
    EXPECT_EQ(found.step(), newest);
    EXPECT_EQ(newest, 1 + times);
    EXPECT_THAT(found.damages, IsEmpty());
  }
}

TEST_F(NewestCheckpointTest, ARefusalCountsUnlessTheFolderHasGone) {
  write(1);
  write(2);
  fs::remove(folders_.path(2) + "/manifest.json");
  fs::create_directory(folders_.path(2) + "/manifest.json");
  EXPECT_THAT(message_of<InputError>([&] { newest_checkpoint(folders_, calls_); }),
              HasSubstr("step-00000002/manifest.json"));
  calls_.live = [&] { remove(2); };
  EXPECT_EQ(newest_checkpoint(folders_, calls_).step(), 1);
}

TEST_F(NewestCheckpointTest, EndsEvenIfTheRunNeverRests) {
  std::int64_t newest = 1;
  write(newest);
  calls_.live = [&] {
    remove(newest);
    write(++newest);
  };
  newest_checkpoint(folders_, calls_);
  EXPECT_LT(newest, 20);
}

}  // namespace newest_checkpoint_test
}  // namespace zero
