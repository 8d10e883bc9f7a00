// Asynchronous saves: the checkpoints that exist after a kill at any call, a loss of power or a failing disk. Also the
// moment at which each rank hears of a failure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <set>
#include <thread>

#include "base/files/lookup.h"
#include "tests/sim/faulty_saves.h"
#include "zero/train/checkpoints.h"

namespace zero::testing {
namespace {

/// Other states than before, as after a step.
void change_states(Engine& engine, int value) {
  for (const auto& group : engine.groups())
    for (const auto& shard : group->states())
      group->visit_states(*shard, StateAccess::write, [&](const StateChunk& chunk) {
        for (void* part : chunk.states) std::memset(part, value, std::size_t(chunk.end - chunk.begin) * sizeof(float));
      });
}

/// Saves step 1, then step 2 asynchronously, with one rank's calls planned. Returns the exception's text; empty: none.
std::string save_twice(Engine& engine, int rank, MemoryDisk& disk, int planned_rank, CallPlan plan, std::int64_t keep) {
  save_at(engine, 1, *disk.calls(), keep);
  const auto calls = disk.calls(rank == planned_rank ? &plan : nullptr);
  try {
    SaveBehind save(engine, 2, *calls, keep);
    while (save.tend()) change_states(engine, 1);
  } catch (const AgreedError& error) {
    return error.what();
  }
  return "";
}

TEST(CheckpointBehind, AKillAtAnyCallLeavesACompleteCheckpoint) {
  std::unique_ptr<MemoryDisk> disk;
  std::atomic<int> points = 0;
  with_engines([&](Engine& engine, int rank) {
    for (int victim = 0; victim < ranks; ++victim)
      for (const std::int64_t keep : {1, 2})
        for (int call = 0;; ++call) {
          bool over = false;
          on_fresh_disk(engine, rank, disk, [&](MemoryDisk& at) {
            over = save_twice(engine, rank, at, victim, {.kill_at = call}, keep).empty();
            engine.host().barrier();
            if (rank != 0) return;
            ++points;
            const std::int64_t found = newest_good(at);
            EXPECT_TRUE(over ? found == 2 : found == 1 || found == 2)
                << "rank " << victim << " killed at call " << call << ": " << found;
            EXPECT_TRUE(all_good(at)) << "rank " << victim << " killed at call " << call;
          });
          if (over) break;
        }
  });
  EXPECT_GT(points, 60);  // the calls of two ranks, with and without an old checkpoint to remove
}

// Threads write side by side: what one has synced says nothing of the other's.
TEST(CheckpointBehind, ALossOfPowerLeavesACompleteCheckpoint) {
  MemoryDisk disk("/disk");
  std::mt19937 random(23);
  std::int64_t states = 0;
  std::atomic<std::int64_t> durable = -1, step = 1;
  std::set<std::int64_t> found;
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
      const auto calls = disk.calls();
      SaveBehind save(engine, s, *calls, 1);
      while (save.tend()) change_states(engine, s);
      engine.host().barrier();
      if (rank == 0) durable = s, step = s + 1;
      engine.host().barrier();
    }
  });
  EXPECT_GE(states, 10000);
  EXPECT_EQ(found, (std::set<std::int64_t>{-1, 1, 2, 3}));
}

TEST(CheckpointBehind, AFailingCallIsOneMessageOnAllRanksAndLeavesTheOlderOne) {
  std::unique_ptr<MemoryDisk> disk;
  with_engines([&](Engine& engine, int rank) {
    for (const int error : {ENOSPC, EIO})
      for (int victim = 0; victim < ranks; ++victim)
        for (int call = 0;; ++call) {
          bool over = false;
          on_fresh_disk(engine, rank, disk, [&](MemoryDisk& at) {
            const std::string said =
                save_twice(engine, rank, at, victim, {.fail_at = call, .fail_with = error, .fails = Fails::changes}, 1);
            over = said.empty() && newest_good(at) == 2;
            engine.host().barrier();
            EXPECT_TRUE(all_good(at)) << call;
            if (said.empty()) return;  // an old one that stays is a warning
            EXPECT_GE(newest_good(at), 1) << call;
            EXPECT_THAT(said,
                        ::testing::AllOf(::testing::HasSubstr("/disk"), ::testing::HasSubstr(std::strerror(error))));
          });
          if (over && call > 40) break;
        }
  });
}

/// A disk on which nothing but what others allow is written to.
class HeldCalls : public FileCalls {
 public:
  HeldCalls(FileCalls& disk, std::atomic<bool>& held) : disk_(disk), held_(held) {}
  std::atomic<int> writes = 0;

  ssize_t write(int file, const void* data, std::size_t bytes, std::int64_t offset) override {
    while (held_) std::this_thread::yield();
    ++writes;
    return disk_.write(file, data, bytes, offset);
  }
  int make_directory(const std::string& path) override { return disk_.make_directory(path); }
  int create(const std::string& path, unsigned mode, bool direct) override { return disk_.create(path, mode, direct); }
  int open(const std::string& path, Links links) override { return disk_.open(path, links); }
  int look(const std::string& path, Links links, FileFacts& facts) override { return disk_.look(path, links, facts); }
  int look(int file, FileFacts& facts) override { return disk_.look(file, facts); }
  int list(const std::string& path, std::vector<std::string>& names) override { return disk_.list(path, names); }
  int allocate(int file, std::int64_t bytes) override { return disk_.allocate(file, bytes); }
  ssize_t read(int file, void* data, std::size_t bytes, std::int64_t offset) override {
    return disk_.read(file, data, bytes, offset);
  }
  int sync(int file) override { return disk_.sync(file); }
  int close(int file) override { return disk_.close(file); }
  int sync_directory(const std::string& path) override { return disk_.sync_directory(path); }
  int rename(const std::string& from, const std::string& to) override { return disk_.rename(from, to); }
  int remove(const std::string& path) override { return disk_.remove(path); }

 private:
  FileCalls& disk_;
  std::atomic<bool>& held_;
};

// Nobody waits until a slow disk has taken all that is of no use any more.
TEST(CheckpointBehind, AFailureOfOneRankIsReportedAtTheNextStepWhileAnotherWrites) {
  MemoryDisk disk("/disk");
  std::atomic<bool> held = true;
  with_engines([&](Engine& engine, int rank) {
    save_at(engine, 1, *disk.calls());
    CallPlan plan{.fail_at = 4, .fail_with = ENOSPC, .fails = Fails::changes};
    const auto calls = disk.calls(rank == 0 ? &plan : nullptr);
    HeldCalls slow(*calls, held);
    SaveBehind save(engine, 2, rank == 0 ? *calls : slow);
    if (rank == 0)
      while (save.save.progress() == SaveProgress::under_way) std::this_thread::yield();
    if (rank == 1) {
      EXPECT_EQ(save.save.progress(), SaveProgress::under_way);
    }
    std::jthread disk_comes_back([&, rank] {
      while (rank == 1 && held) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));  // go_on() waits for the pending write
        held = false;
      }
    });
    EXPECT_THROW(save.tend(), AgreedError);
    if (rank == 1) {
      EXPECT_LE(slow.writes, 1);
    }
  });
  EXPECT_EQ(newest_good(disk), 1);
}

TEST(CheckpointBehind, APendingSaveDelaysNoStep) {
  MemoryDisk disk("/disk");
  std::atomic<bool> held = true;
  with_engines([&](Engine& engine, int rank) {
    const auto calls = disk.calls();
    HeldCalls slow(*calls, held);
    States then, now;
    add_states(engine, then);
    engine.host().barrier();
    SaveBehind save(engine, 1, rank == 1 ? static_cast<FileCalls&>(slow) : *calls);
    for (int step = 0; step < 100; ++step) {
      EXPECT_TRUE(save.tend());
      change_states(engine, step);
    }
    EXPECT_EQ(newest_good(disk), -1);
    // Time goes by for the rank that writes alone.
    while (rank == 0 && save.save.progress() == SaveProgress::under_way) std::this_thread::yield();
    const auto before = save.save.time();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(save.save.time() > before, rank == 1);
    engine.host().barrier();
    held = false;
    while (save.tend()) {
    }
    engine.host().barrier();
    restore_from(engine, 1, *calls);
    add_states(engine, now);
    engine.host().barrier();
    EXPECT_EQ(newest_good(disk), 1);
    expect_equal(then, now);
  });
}

TEST(CheckpointBehind, OldOnesGoWhenTheNewOneIsComplete) {
  MemoryDisk disk("/disk");
  std::atomic<bool> held = false;
  with_engines([&](Engine& engine, int rank) {
    const auto calls = disk.calls();
    HeldCalls slow(*calls, held);
    const CheckpointFolders folders(*calls, "/disk/checkpoints");
    for (const std::int64_t step : {1, 2}) save_at(engine, step, *calls, 2);
    engine.host().barrier();
    held = true;
    engine.host().barrier();
    SaveBehind save(engine, 3, rank == 1 ? static_cast<FileCalls&>(slow) : *calls, 2);
    EXPECT_TRUE(save.tend());
    EXPECT_EQ(folders.steps(), (std::vector<std::int64_t>{2, 1}));
    engine.host().barrier();
    held = false;
    while (save.tend()) {
    }
    engine.host().barrier();
    EXPECT_EQ(folders.steps(), (std::vector<std::int64_t>{3, 2}));
  });
}

// This is a rank that fails in training: no agreement follows, and its thread ends before the memory that it
// reads goes.
TEST(CheckpointBehind, OneThatIsLeftAloneEndsWithoutTheOtherRanks) {
  MemoryDisk disk("/disk");
  with_engines([&](Engine& engine, int rank) {
    const auto calls = disk.calls();
    save_at(engine, 1, *calls);
    for (int step = 2; step < 30; ++step) {
      { const SaveBehind left(engine, step, *calls); }
      engine.host().barrier();
      if (rank == 0) CheckpointFolders(*calls, "/disk/checkpoints").sweep();
      engine.host().barrier();
    }
    EXPECT_EQ(newest_good(disk), 1);
    engine.host().barrier();
    save_at(engine, 30, *calls);
  });
  EXPECT_EQ(newest_good(disk), 30);
}

// In a run: the failed save is removed with a warning, the next one is written, and a third one waits for it.
TEST(CheckpointBehind, ARunGivesUpOneThatFailsAndBeginsTheNext) {
  MemoryDisk disk("/disk");
  with_engines([&](Engine& engine, int rank) {
    CallPlan plan{.fail_at = 1000, .fail_with = ENOSPC, .fails = Fails::changes};
    const auto calls = disk.calls(rank == 1 ? &plan : nullptr);
    CheckpointConfig config;
    config.interval = 1;
    config.keep = 5;
    Checkpoints checkpoints(config, {engine, {}, "/disk/checkpoints", *calls, engine.host(), {}, true});
    EXPECT_FALSE(checkpoints.under_way());
    EXPECT_EQ(checkpoints.progress(), SaveProgress::ended);
    checkpoints.begin(position_at(engine, 1));
    EXPECT_TRUE(checkpoints.under_way());
    checkpoints.begin(position_at(engine, 2));  // waits for the first one
    checkpoints.finish();
    EXPECT_FALSE(checkpoints.under_way());
    EXPECT_FALSE(checkpoints.failed());
    if (rank == 1) plan.fail_at = 0;
    checkpoints.begin(position_at(engine, 3));
    while (rank == 1 && checkpoints.progress() != SaveProgress::failed) std::this_thread::yield();
    checkpoints.go_on(/*failed=*/true);
    EXPECT_FALSE(checkpoints.under_way());
    EXPECT_TRUE(checkpoints.failed());
    if (rank == 1) plan = {};
    engine.host().barrier();
    EXPECT_EQ(checkpoints.folders().names(), (std::vector<std::int64_t>{2, 1}));
    EXPECT_EQ(names_in("/disk/checkpoints", *disk.calls()).size(), 2u);  // nothing of the third
    engine.host().barrier();
    checkpoints.begin(position_at(engine, 4));
    EXPECT_TRUE(checkpoints.save(position_at(engine, 5)));
    EXPECT_FALSE(checkpoints.failed());
    engine.host().barrier();
    EXPECT_EQ(checkpoints.folders().steps(), (std::vector<std::int64_t>{5, 4, 2, 1}));
    EXPECT_TRUE(all_good(disk));
  });
}

}  // namespace
}  // namespace zero::testing
