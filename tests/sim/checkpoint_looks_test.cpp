// Finding and reading checkpoints on a failing disk: an error is no damage, and nothing is renamed for it.
// ShardedModel::load_state() uses resume_states(), and save_state() uses save_checkpoint().
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <iostream>
#include <new>

#include "base/files/lookup.h"
#include "tests/sim/faulty_saves.h"
#include "zero/checkpoint/resume_states.h"

namespace zero::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int errors[] = {EIO, ESTALE, EMFILE, EACCES, ENOMEM};

std::vector<std::string> names_on(MemoryDisk& disk) {
  const auto calls = disk.calls();
  return names_in("/disk/checkpoints", *calls);
}

/// The step that was resumed, or -1 and what was thrown.
struct ResumeOutcome {
  std::int64_t step = -1;
  std::string said;
  bool refused = false;  // with exit code 2
};

ResumeOutcome resume_with(Engine& engine, FileCalls& calls) {
  CheckpointFolders folders(calls, "/disk/checkpoints");
  try {
    return {resume_states(engine, folders, calls, engine.host()).steps};
  } catch (const Error& error) {
    return {-1, error.what(), error.code() == ExitCode::bad_input};
  }
}

class CheckpointLooks : public ::testing::Test {
 protected:
  CheckpointLooks() {
    with_engines([&](Engine& engine, int) {
      for (const int step : {1, 2}) save_at(engine, step, *whole_.calls());
    });
    EXPECT_THAT(names_on(whole_), ElementsAre("step-00000001", "step-00000002"));
  }

  MemoryDisk whole_{"/disk"};
};

TEST_F(CheckpointLooks, AnErrorOfAnyCallOfAnyRankIsNoDamage) {
  std::unique_ptr<MemoryDisk> disk;
  int calls_tried = 0, cases = 0;
  with_engines([&](Engine& engine, int rank) {
    Communicator& host = engine.host();
    for (const std::vector<int>& victims : {std::vector{0}, {1}, {0, 1}})
      for (int call = 0, failed = 1; failed > 0; ++call) {
        failed = 0;
        for (const int error : errors)
          for (const Fails fails : {Fails::once, Fails::for_good}) {
            if (rank == 0) disk = std::make_unique<MemoryDisk>(whole_);
            host.barrier();
            CallPlan plan{.fail_at = call, .fail_with = error, .fails = fails};
            const bool planned = std::ranges::count(victims, rank) > 0;
            const auto calls = disk->calls(planned ? &plan : nullptr);
            const ResumeOutcome outcome = resume_with(engine, *calls);
            const auto all = all_gather_number(host, plan.failed);
            const bool any = all[0] + all[1] > 0;
            if (any && fails == Fails::for_good) {
              EXPECT_TRUE(outcome.refused || outcome.step == 2) << outcome.said;
            } else {
              EXPECT_EQ(outcome.step, 2) << outcome.said;
            }
            host.barrier();
            failed += any;
            if (rank != 0) continue;
            EXPECT_THAT(names_on(*disk), ElementsAre("step-00000001", "step-00000002")) << "call " << call;
            cases += any;
          }
        if (rank == 0) calls_tried += failed > 0;
      }
  });
  std::cout << calls_tried << " calls, " << cases << " failures tried\n";
  EXPECT_GT(calls_tried, 30);
}

TEST_F(CheckpointLooks, AnErrorOfAnyCallOfASaveLosesNoCheckpoint) {
  std::unique_ptr<MemoryDisk> disk;
  int calls_tried = 0, cases = 0;
  with_engines([&](Engine& engine, int rank) {
    Communicator& host = engine.host();
    for (const int step : {2, 3})  // one that is there, and a new one
      for (int victim = 0; victim < ranks; ++victim)
        for (int call = 0, failed = 1; failed > 0; ++call) {
          failed = 0;
          for (const int error : errors)
            for (const Fails fails : {Fails::once, Fails::for_good}) {
              if (rank == 0) disk = std::make_unique<MemoryDisk>(whole_);
              host.barrier();
              CallPlan plan{.fail_at = call, .fail_with = error, .fails = fails};
              const auto calls = disk->calls(rank == victim ? &plan : nullptr);
              std::string said;
              try {
                save_at(engine, step, *calls);
              } catch (const Error& thrown) {
                said = thrown.what();
              }
              const auto all = all_gather_number(host, plan.failed);
              failed += all[0] + all[1] > 0;
              if (rank == 0) {
                EXPECT_TRUE(all_good(*disk));
                EXPECT_GE(newest_good(*disk), said.empty() ? step : 2) << "call " << call << ": " << said;
                cases += all[0] + all[1] > 0;
              }
              host.barrier();
            }
          if (rank == 0) calls_tried += failed > 0;
        }
  });
  std::cout << calls_tried << " calls, " << cases << " failures tried\n";
  EXPECT_GT(calls_tried, 60);
}

/// A disk on which one rank's reads find no memory, or which does not show it its files.
class OtherCalls final : public FileCalls {
 public:
  enum class Way { no_memory, no_files };
  OtherCalls(std::unique_ptr<FileCalls> disk, Way way) : disk_(std::move(disk)), way_(way) {}

  int open(const std::string& path, Links links) override {
    if (way_ == Way::no_files && path.ends_with(".states")) return errno = ENOENT, -1;
    return disk_->open(path, links);
  }
  ssize_t read(int file, void* data, std::size_t bytes, std::int64_t offset) override {
    if (way_ == Way::no_memory) throw std::bad_alloc();
    return disk_->read(file, data, bytes, offset);
  }
  int look(const std::string& path, Links links, FileFacts& facts) override { return disk_->look(path, links, facts); }
  int look(int file, FileFacts& facts) override { return disk_->look(file, facts); }
  int list(const std::string& path, std::vector<std::string>& names) override { return disk_->list(path, names); }
  int close(int file) override { return disk_->close(file); }
  void pause(std::chrono::milliseconds) override {}

 private:
  std::unique_ptr<FileCalls> disk_;
  Way way_;
};

TEST_F(CheckpointLooks, WantOfMemoryAndFilesThatOneRankDoesNotSeeAreNoDamage) {
  for (const auto way : {OtherCalls::Way::no_memory, OtherCalls::Way::no_files}) {
    with_engines([&](Engine& engine, int rank) {
      const auto calls = whole_.calls();
      OtherCalls other(whole_.calls(), way);
      const ResumeOutcome outcome = resume_with(engine, rank == 1 ? static_cast<FileCalls&>(other) : *calls);
      EXPECT_EQ(outcome.step, -1);
      EXPECT_THAT(outcome.said, HasSubstr("rank 1: "));
      EXPECT_EQ(outcome.refused, way == OtherCalls::Way::no_files) << outcome.said;
    });
    EXPECT_THAT(names_on(whole_), ElementsAre("step-00000001", "step-00000002"));
  }
}

TEST_F(CheckpointLooks, AFileThatIsGoneIsDamage) {
  MemoryDisk disk(whole_);
  disk.calls()->remove("/disk/checkpoints/step-00000002/rank-00001.states");
  with_engines([&](Engine& engine, int) { EXPECT_EQ(resume_with(engine, *disk.calls()).step, 1); });
  EXPECT_THAT(names_on(disk), ElementsAre("step-00000001", "step-00000002.damaged"));
}

}  // namespace
}  // namespace zero::testing
