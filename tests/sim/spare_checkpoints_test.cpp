// Spare checkpoints on their way home: a kill at any call, the loss of power, and calls that fail lose nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/files/lookup.h"
#include "base/log.h"
#include "tests/sim/faulty_saves.h"
#include "tests/unit/temporary_folder.h"
#include "zero/checkpoint/spare_checkpoints.h"

namespace zero::testing {
namespace {

class SpareCheckpoints : public ::testing::Test {
 protected:
  /// Steps 1 and 2 at home, step 3 in one spare folder and step 4 in another.
  SpareCheckpoints() {
    with_engines([&](Engine& engine, int) {
      const auto calls = disk_.calls();
      RunDescription run;
      run.id = "a";
      for (const std::int64_t step : {1, 2, 3, 4}) {
        CheckpointFolders folders(*calls, step < 3 ? "/disk/checkpoints" : spare_folder(step));
        save_checkpoint(engine, run, position_at(engine, int(step)), folders, *calls, engine.host(),
                        {.chunk_elements = small_chunk});
      }
    });
  }

  static std::string spare_folder(std::int64_t step) { return text("/disk/spare/zero-checkpoint-", step); }

  /// Returns the exception's text; empty: none.
  static std::string bring(MemoryDisk& disk, CallPlan* plan = nullptr, const std::string& id = "a") {
    const auto calls = disk.calls(plan);
    CheckpointFolders home(*calls, "/disk/checkpoints");
    try {
      bring_home(
          home, {"/disk/absent", "/disk/spare"},
          [&](const RunDescription& run) { return run.id == id ? Owner::this_run : Owner::another_run; }, *calls);
      return "";
    } catch (const InputError& error) {
      return error.what();
    }
  }

  static bool verifies(MemoryDisk& disk, const std::string& root, std::int64_t step) {
    const auto calls = disk.calls();
    try {
      SavedStates(*calls, CheckpointFolders(*calls, root).path(step)).verify();
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  /// In every case nothing is lost, no incomplete folder has a complete one's name, and the next start finds the
  /// newest.
  static void expect_nothing_lost(MemoryDisk& disk, const std::string& when) {
    EXPECT_TRUE(all_good(disk)) << when;
    EXPECT_GE(newest_good(disk), 2) << when;
    EXPECT_TRUE(newest_good(disk) == 4 || verifies(disk, spare_folder(4), 4)) << when;
    EXPECT_TRUE(newest_good(disk) == 4 || verifies(disk, spare_folder(3), 3)) << when;
    for (const std::string& file : disk.files())
      EXPECT_THAT(file, ::testing::Not(::testing::HasSubstr(".damaged"))) << when;
    EXPECT_EQ(bring(disk), "") << when;
    EXPECT_EQ(newest_good(disk), 4) << when;
    EXPECT_THAT(spare_files(disk), ::testing::IsEmpty()) << when;
  }

  static std::vector<std::string> spare_files(const MemoryDisk& disk) {
    std::vector<std::string> files = disk.files();
    std::erase_if(files, [](const std::string& file) { return !file.starts_with("/disk/spare"); });
    return files;
  }

  MemoryDisk disk_{"/disk"};
};

TEST_F(SpareCheckpoints, TheNewestGoesHomeAndTheRestGo) {
  EXPECT_EQ(bring(disk_, nullptr, "b"), "");
  EXPECT_EQ(newest_good(disk_), 2);  // of another run
  EXPECT_EQ(bring(disk_), "");
  EXPECT_EQ(newest_good(disk_), 4);
  EXPECT_THAT(spare_files(disk_), ::testing::IsEmpty());
}

TEST_F(SpareCheckpoints, OneOfAnUnknownOwnerStaysAndIsNamed) {
  const MemoryDisk before(disk_);
  const auto calls = disk_.calls();
  CheckpointFolders home(*calls, "/disk/checkpoints");
  ::testing::internal::CaptureStderr();
  bring_home(
      home, {"/disk/spare"}, [](const RunDescription&) { return Owner::unknown; }, *calls);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::HasSubstr("zero_export " + spare_folder(4) + "/step-00000004 OUT"));
  EXPECT_EQ(disk_.files(), before.files());
}

// A file server may make another user of root.
TEST(SpareFolder, OneThatIsNotThisUsersIsNotTaken) {
  class OthersFiles : public FileCalls {
   public:
    int look(const std::string& path, Links links, FileFacts& facts) override {
      const int result = FileCalls::look(path, links, facts);
      facts.owner += 1;
      return result;
    }
  };
  const TemporaryFolder place;
  OthersFiles others;
  EXPECT_EQ(make_spare_folder(place.path(), others), std::nullopt);
  EXPECT_THAT(names_in(place.path()), ::testing::IsEmpty());
  FileCalls calls;
  EXPECT_NE(make_spare_folder(place.path(), calls), std::nullopt);
}

TEST_F(SpareCheckpoints, ADamagedOneStaysAndTheOneBeforeItIsTaken) {
  disk_.content(spare_folder(4) + "/step-00000004/rank-00001.states")[100] ^= std::byte{4};
  EXPECT_EQ(bring(disk_), "");
  EXPECT_EQ(newest_good(disk_), 3);
  EXPECT_TRUE(all_good(disk_));
  EXPECT_THAT(spare_files(disk_), ::testing::SizeIs(3));
  EXPECT_EQ(bring(disk_), "");  // again and again
  EXPECT_THAT(spare_files(disk_), ::testing::SizeIs(3));
}

// The power went between the copy and the removal, and the copy is damaged since.
TEST_F(SpareCheckpoints, ADamagedCopyAtHomeIsReplaced) {
  MemoryDisk brought(disk_);
  EXPECT_EQ(bring(brought), "");
  for (const std::string& file : brought.files())
    if (file.find("step-00000004") != std::string::npos && file.ends_with("rank-00000.states"))
      brought.content(file)[0] ^= std::byte{1};
  EXPECT_EQ(newest_good(brought), 2);
  const auto there = brought.calls();
  there->make_directory("/disk/spare/zero-checkpoint-4");
  there->make_directory("/disk/spare/zero-checkpoint-4/step-00000004");
  for (const std::string& file : disk_.files())
    if (file.starts_with(spare_folder(4))) {
      const std::vector<std::byte>& content = disk_.content(file);
      there->write(there->create(file, 0644, false), content.data(), content.size(), 0);
    }
  EXPECT_EQ(bring(brought), "");
  EXPECT_EQ(newest_good(brought), 4);
  EXPECT_TRUE(all_good(brought));
}

TEST_F(SpareCheckpoints, AKillAtAnyCallLosesNothing) {
  int call = 0;
  for (bool over = false; !over; ++call) {
    MemoryDisk disk(disk_);
    CallPlan plan{.kill_at = call};
    try {
      over = bring(disk, &plan).empty();
    } catch (const Killed&) {
    }
    expect_nothing_lost(disk, text("killed at call ", call));
  }
  EXPECT_GT(call, 60);
}

TEST_F(SpareCheckpoints, ALossOfPowerLosesNothing) {
  std::mt19937 random(5);
  int states = 0;
  MemoryDisk disk(disk_);
  disk.observer = [&](const MemoryDisk& now) {
    for (int i = 0; i < 50; ++i, ++states) {
      MemoryDisk left = now.after_power_loss(random);
      EXPECT_TRUE(newest_good(left) == 4 || (verifies(left, spare_folder(4), 4) && verifies(left, spare_folder(3), 3)));
      EXPECT_TRUE(all_good(left));
    }
  };
  EXPECT_EQ(bring(disk), "");
  EXPECT_GT(states, 200);
}

TEST_F(SpareCheckpoints, ACallThatFailsIsNoAbsenceAndNoDamage) {
  for (const int reason : {EIO, ESTALE, EMFILE, ENOSPC})
    for (const Fails fails : {Fails::once, Fails::for_good}) {
      int refused = 0;
      for (int call = 0;; ++call) {
        MemoryDisk disk(disk_);
        CallPlan plan{.fail_at = call, .fail_with = reason, .fails = fails};
        const std::string said = bring(disk, &plan);
        if (plan.failed == 0) break;
        refused += !said.empty();
        if (!said.empty()) {
          EXPECT_THAT(said, ::testing::HasSubstr(std::strerror(reason))) << call;
          EXPECT_TRUE(newest_good(disk) == 4 || newest_good(disk) == 2) << call;
        } else {
          EXPECT_EQ(newest_good(disk), 4) << call;
        }
        expect_nothing_lost(disk, text("call ", call, " fails: ", std::strerror(reason)));
      }
      EXPECT_GT(refused, fails == Fails::for_good ? 20 : 5) << std::strerror(reason);
    }
}

}  // namespace
}  // namespace zero::testing
