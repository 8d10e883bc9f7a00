// Checkpoints survive a kill at any call of any rank, a loss of power, a failing disk and altered files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "base/files/lookup.h"
#include "tests/sim/faulty_saves.h"

namespace zero::testing {
namespace checkpoint_faults_test {

/// Saves step 1, then step 2 with one rank's calls planned. Returns the text of the second save's exception; empty:
/// none.
std::string save_twice_at(Engine& engine, int rank, MemoryDisk& disk, std::pair<int, int> steps, int planned_rank,
                          CallPlan plan, std::int64_t keep) {
  save_at(engine, steps.first, *disk.calls(), keep);
  const auto calls = disk.calls(rank == planned_rank ? &plan : nullptr);
  try {
    save_at(engine, steps.second, *calls, keep);
  } catch (const AgreedError& error) {
    return error.what();
  }
  return "";
}

std::string save_twice(Engine& engine, int rank, MemoryDisk& disk, int planned_rank, CallPlan plan, std::int64_t keep) {
  return save_twice_at(engine, rank, disk, {1, 2}, planned_rank, plan, keep);
}

TEST(CheckpointFaults, AKillAtAnyCallLeavesACompleteCheckpoint) {
  std::unique_ptr<MemoryDisk> disk;
  std::atomic<int> points = 0;
  with_engines([&](Engine& engine, int rank) {
    for (int victim = 0; victim < ranks; ++victim)
      for (const std::int64_t keep : {1, 2})
        for (int call = 0;; ++call) {
          bool over = false;
          on_fresh_disk(engine, rank, disk, [&](MemoryDisk& at) {
            const std::string failure = save_twice(engine, rank, at, victim, {.kill_at = call}, keep);
            over = failure.empty();
            engine.host().barrier();
            if (rank != 0) return;
            ++points;
            const std::int64_t found = newest_good(at);
            EXPECT_TRUE(over ? found == 2 : found == 1 || found == 2)
                << "rank " << victim << " killed at call " << call << ": " << found;
            EXPECT_TRUE(all_good(at)) << "rank " << victim << " killed at call " << call;
          });
          // The next run sweeps and saves the same step.
          on_fresh_disk(engine, rank, disk, [](MemoryDisk&) {});
          if (over) break;
        }
  });
  EXPECT_GT(points, 60);  // the calls of two ranks, with and without an old checkpoint to remove
}

// Step 2 is replaced, or step 1 is, after which step 2 is set aside.
TEST(CheckpointFaults, AKillWhereAStepIsSavedAgainLeavesACompleteCheckpoint) {
  std::unique_ptr<MemoryDisk> disk;
  std::atomic<int> points = 0;
  with_engines([&](Engine& engine, int rank) {
    for (const int again : {1, 2})
      for (int call = 0; call < 200; ++call) {
        bool over = false;
        on_fresh_disk(engine, rank, disk, [&](MemoryDisk& at) {
          save_at(engine, 1, *at.calls());
          CallPlan plan{.kill_at = call};
          over = save_twice_at(engine, rank, at, {2, again}, 0, plan, 2).empty();
          engine.host().barrier();
          if (rank != 0) return;
          ++points;
          const std::int64_t found = newest_good(at);
          EXPECT_TRUE(over         ? found == again
                      : again == 2 ? found == 2
                                   : found == 1 || found == 2)
              << again << " killed at call " << call << ": " << found;
          EXPECT_TRUE(all_good(at)) << again << " killed at call " << call;
          const auto calls = at.calls();
          CheckpointFolders folders(*calls, "/disk/checkpoints");
          folders.sweep();
          const std::vector<std::int64_t> steps = folders.steps();
          for (const std::string& name : names_in("/disk/checkpoints", *calls)) {
            const bool is_there = std::find(steps.begin(), steps.end(), std::stoll(name.substr(5, 8))) != steps.end();
            EXPECT_TRUE(is_there ? name.size() == 13 : name.ends_with(".replaced") || name == "step-00000002.later")
                << name << ", killed at call " << call;
          }
        });
        if (over) break;
      }
  });
  EXPECT_GT(points, 30);
}

/// The step found after a kill, once the next start has taken back names; -1: none.
std::int64_t found_by_the_next_start(MemoryDisk& disk) {
  const auto calls = disk.calls();
  CheckpointFolders(*calls, "/disk/checkpoints").take_back();
  return newest_good(disk);
}

// On a disk that exchanges names and on one that cannot.
TEST(CheckpointFaults, TheOnlyCheckpointIsThereAtEveryInstantOfASecondSaveOfItsStep) {
  std::unique_ptr<MemoryDisk> disk;
  with_engines([&](Engine& engine, int rank) {
    for (const bool exchanges : {true, false})
      for (const std::int64_t keep : {1, 2})
        for (int call = 0; call < 200; ++call) {
          bool over = false;
          on_fresh_disk(engine, rank, disk, [&](MemoryDisk& at) {
            if (rank == 0) at.exchanges = exchanges;
            engine.host().barrier();
            over = save_twice_at(engine, rank, at, {1, 1}, 0, {.kill_at = call}, keep).empty();
            engine.host().barrier();
            if (rank != 0) return;
            if (exchanges) {
              EXPECT_EQ(newest_good(at), 1) << "killed at call " << call;
            }
            EXPECT_EQ(found_by_the_next_start(at), 1) << "killed at call " << call;
            EXPECT_TRUE(all_good(at)) << "killed at call " << call;
            const auto calls = at.calls();
            CheckpointFolders folders(*calls, "/disk/checkpoints");
            folders.sweep();
            EXPECT_THAT(names_in("/disk/checkpoints", *calls), ::testing::ElementsAre("step-00000001"));
          });
          if (over) break;
        }
  });
}

TEST(CheckpointFaults, ALossOfPowerInASecondSaveOfAStepLeavesTheOnlyCheckpoint) {
  for (const bool exchanges : {true, false}) {
    MemoryDisk disk("/disk");
    disk.exchanges = exchanges;
    std::mt19937 random(17);
    std::int64_t states = 0;
    with_engines([&](Engine& engine, int rank) {
      save_at(engine, 1, *disk.calls());
      engine.host().barrier();
      if (rank == 0)
        disk.observer = [&](const MemoryDisk& now) {
          for (int i = 0; i < 200; ++i, ++states) {
            MemoryDisk left = now.after_power_loss(random);
            ASSERT_EQ(found_by_the_next_start(left), 1);
          }
        };
      engine.host().barrier();
      save_at(engine, 1, *disk.calls());
      engine.host().barrier();
      if (rank == 0) disk.observer = nullptr;
    });
    EXPECT_GE(states, 2000);
  }
}

TEST(CheckpointFaults, AfterAKillTheNextRunSweepsAndSavesTheSameStep) {
  std::unique_ptr<MemoryDisk> disk;
  with_engines([&](Engine& engine, int rank) {
    for (const int call : {5, 7, 9})  // from the first file on
      on_fresh_disk(engine, rank, disk, [&](MemoryDisk& at) {
        ASSERT_FALSE(save_twice(engine, rank, at, 0, {.kill_at = call}, 2).empty());
        engine.host().barrier();
        if (rank == 0) {
          const auto calls = at.calls();
          EXPECT_EQ(CheckpointFolders(*calls, "/disk/checkpoints").sweep(), 1);
        }
        engine.host().barrier();
        save_at(engine, 2, *at.calls());
        engine.host().barrier();
        if (rank == 0) {
          EXPECT_EQ(newest_good(at), 2);
        }
      });
  });
}

TEST(CheckpointFaults, ASaveRemovesWhatAnEarlierOneCouldNot) {
  std::unique_ptr<MemoryDisk> disk;
  with_engines([&](Engine& engine, int rank) {
    on_fresh_disk(engine, rank, disk, [&](MemoryDisk& at) {
      const auto calls = at.calls();
      if (rank == 0) CheckpointFolders(*calls, "/disk/checkpoints").begin(1);
      engine.host().barrier();
      save_at(engine, 2, *calls, 1);
      engine.host().barrier();
      if (rank == 0) {
        EXPECT_THAT(names_in("/disk/checkpoints", *calls), ::testing::ElementsAre("step-00000002"));
      }
    });
  });
}

// After every call of three saves (the last two with an old checkpoint to remove) the power goes, many times over.
TEST(CheckpointFaults, ALossOfPowerLeavesACompleteCheckpoint) {
  MemoryDisk disk("/disk");
  std::mt19937 random(17);
  std::int64_t durable = -1, states = 0;
  std::set<std::int64_t> found;
  std::atomic<int> step = 1;
  disk.observer = [&](const MemoryDisk& now) {
    for (int i = 0; i < 200; ++i, ++states) {
      MemoryDisk left = now.after_power_loss(random);
      const std::int64_t newest = newest_good(left);
      found.insert(newest);
      ASSERT_TRUE(newest == durable || newest == step)
          << "step " << newest << ", where " << durable << " was durable and " << step << " being saved";
    }
  };
  with_engines([&](Engine& engine, int rank) {
    for (int s = 1; s <= 3; ++s) {
      save_at(engine, s, *disk.calls(), 1);
      engine.host().barrier();
      if (rank == 0) durable = s, step = s + 1;
      engine.host().barrier();
    }
  });
  EXPECT_GE(states, 10000);
  EXPECT_EQ(found, (std::set<std::int64_t>{-1, 1, 2, 3}));
}

struct Failure {
  int error;
  const char* words;
};

TEST(CheckpointFaults, AFailingCallIsOneMessageOnAllRanksAndLeavesTheOlderOne) {
  std::unique_ptr<MemoryDisk> disk;
  with_engines([&](Engine& engine, int rank) {
    for (const Failure failure : {Failure{ENOSPC, "free some space"}, Failure{EIO, "the disk fails"}})
      for (int victim = 0; victim < ranks; ++victim)
        for (int call = 0;; ++call) {
          bool over = false;
          on_fresh_disk(engine, rank, disk, [&](MemoryDisk& at) {
            const std::string said = save_twice(
                engine, rank, at, victim, {.fail_at = call, .fail_with = failure.error, .fails = Fails::changes}, 1);
            over = said.empty() && newest_good(at) == 2;
            engine.host().barrier();
            EXPECT_TRUE(all_good(at)) << call;
            if (said.empty()) return;  // an old one that stays is a warning
            EXPECT_GE(newest_good(at), 1) << call;
            EXPECT_THAT(said, ::testing::AllOf(::testing::HasSubstr("/disk"),
                                               ::testing::HasSubstr(std::strerror(failure.error)),
                                               ::testing::HasSubstr(failure.words)));
          });
          if (over && call > 40) break;
        }
  });
}

/// A folder with the name of a later step that holds only a foreign file.
void add_husk(FileCalls& calls, const std::string& folder) {
  ASSERT_EQ(calls.make_directory(folder), 0);
  const int file = calls.create(folder + "/notes", 0644, false);
  ASSERT_GE(file, 0);
  ASSERT_EQ(calls.write(file, "x", 1, 0), 1);
  calls.close(file);
}

TEST(CheckpointFaults, AFolderWithoutAManifestIsNoCheckpointAndKeepsItsFiles) {
  MemoryDisk disk("/disk");
  with_engines([&](Engine& engine, int rank) {
    const auto calls = disk.calls();
    save_at(engine, 1, *calls, 1);
    engine.host().barrier();
    if (rank == 0)
      for (const int step : {3, 7}) add_husk(*calls, "/disk/checkpoints/step-0000000" + std::to_string(step));
    engine.host().barrier();
    for (const int step : {2, 3, 4}) {
      save_at(engine, step, *calls, 1);
      engine.host().barrier();
      if (rank == 0) {
        EXPECT_EQ(CheckpointFolders(*calls, "/disk/checkpoints").steps(), std::vector<std::int64_t>{step});
        if (step == 3)
          calls->close(calls->create("/disk/checkpoints/step-00000003/notes", 0644, false));  // outlives the checkpoint
      }
      engine.host().barrier();
    }
  });
  EXPECT_EQ(newest_good(disk), 4);
  const std::vector<std::string> files = disk.files();
  for (const char* kept : {"step-00000003.kept/notes", "step-00000003.kept-2/notes", "step-00000007/notes"})
    EXPECT_THAT(files, ::testing::Contains("/disk/checkpoints/" + std::string(kept)));
}

TEST(CheckpointFaults, WritesThatMoveAPartAreGoneOnWith) {
  MemoryDisk disk("/disk");
  with_engines([&](Engine& engine, int rank) {
    CallPlan plan{.short_writes_of = 5000};
    const auto calls = disk.calls(rank == 1 ? &plan : nullptr);
    save_at(engine, 1, *calls);
  });
  EXPECT_EQ(newest_good(disk), 1);
}

/// True if a reader refuses step 2 after a change of its files, and takes step 1.
bool falls_back(const MemoryDisk& whole, const std::function<void(MemoryDisk&)>& damage) {
  MemoryDisk disk(whole);
  damage(disk);
  return newest_good(disk) == 1;
}

class DamagedFiles : public ::testing::Test {
 protected:
  DamagedFiles() {
    with_engines([&](Engine& engine, int rank) {
      save_at(engine, 1, *disk_.calls());
      // Other states of the same sizes.
      for (const auto& group : engine.groups())
        for (const auto& shard : group->states())
          group->visit_states(*shard, StateAccess::write, [rank](const StateChunk& chunk) {
            for (void* part : chunk.states)
              std::memset(part, 1 + rank, std::size_t(chunk.end - chunk.begin) * sizeof(float));
          });
      save_at(engine, 2, *disk_.calls());
    });
    EXPECT_EQ(newest_good(disk_), 2);
    for (const std::string& file : disk_.files())
      if (file.find("step-00000002") != std::string::npos) files_.push_back(file);
    EXPECT_EQ(files_.size(), ranks + 1u);
  }

  MemoryDisk disk_{"/disk"};
  std::vector<std::string> files_;
  std::mt19937 random_{3};
};

TEST_F(DamagedFiles, ABitThatFlipsAnywhereIsFound) {
  for (const std::string& file : files_) {
    const std::size_t bytes = disk_.content(file).size();
    const bool all = file.ends_with("manifest.json");
    for (std::size_t i = 0; i < (all ? bytes : 1000); ++i) {
      const std::size_t place = all ? i : random_() % bytes;
      const auto bit = std::byte(1 << random_() % 8);
      ASSERT_TRUE(falls_back(disk_, [&](MemoryDisk& disk) { disk.content(file)[place] ^= bit; }))
          << file << ", byte " << place;
    }
  }
}

TEST_F(DamagedFiles, AFileThatIsCutOrLongerIsFound) {
  for (const std::string& file : files_)
    for (int i = 0; i < 70; ++i)
      ASSERT_TRUE(falls_back(disk_, [&](MemoryDisk& disk) {
        auto& content = disk.content(file);
        content.resize(i == 0 ? content.size() + 1 : i == 1 ? 0 : random_() % content.size());
      })) << file;
}

TEST_F(DamagedFiles, FilesThatChangePlacesAreFound) {
  EXPECT_TRUE(
      falls_back(disk_, [&](MemoryDisk& disk) { std::swap(disk.content(files_[1]), disk.content(files_[2])); }));
  for (const std::string& file : files_) {  // of the other step
    std::string other = file;
    other.replace(other.find("00000002"), 8, "00000001");
    if (file.ends_with("manifest.json")) continue;
    EXPECT_TRUE(falls_back(disk_, [&](MemoryDisk& disk) { disk.content(file) = disk.content(other); })) << file;
  }
}

TEST_F(DamagedFiles, TheMessageNamesFileAndBlock) {
  disk_.content(files_[1])[5] ^= std::byte(1);
  const auto calls = disk_.calls();
  try {
    SavedStates(*calls, "/disk/checkpoints/step-00000002").verify();
    FAIL() << "not found";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::AllOf(::testing::HasSubstr(files_[1]), ::testing::HasSubstr("block 0")));
  }
}

}  // namespace checkpoint_faults_test
}  // namespace zero::testing
