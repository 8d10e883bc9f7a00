// Each call that a run makes to its disk fails in turn, lookups included, with the errors of file servers and of nodes
// that run short. No checkpoint that was written is lost or renamed, and no line of the records.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files/lookup.h"
#include "base/log.h"
#include "tests/unit/train/object_of_line.h"
#include "tests/unit/train/trainer_bench.h"
#include "zero/checkpoint/checkpoint_folders.h"
#include "zero/checkpoint/saved_states.h"

namespace zero::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string folder = "/disk/run", root = folder + "/checkpoints", records = folder + "/metrics.jsonl";
constexpr std::int64_t steps = 3;

BenchRun run_in_folder(std::vector<std::string> more = {}) {
  BenchRun run;
  run.ranks = 2;
  run.steps = steps;
  run.has_folder = true;
  run.settings = {"zero.stage=1", "training.global_batch_size=2", "checkpoint.interval=1"};
  run.settings.insert(run.settings.end(), more.begin(), more.end());
  return run;
}

std::string text_of(MemoryDisk& disk, const std::string& path) {
  const auto& bytes = disk.content(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::map<std::string, std::string> contents_of(MemoryDisk& disk) {
  std::map<std::string, std::string> contents;
  for (const std::string& file : disk.files()) contents[file] = text_of(disk, file);
  return contents;
}

/// The objects of lines, without what no two runs share, by step.
std::map<std::int64_t, nlohmann::json> objects_in(const std::string& lines) {
  std::map<std::int64_t, nlohmann::json> objects;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line) && !in.eof();) {  // a loss of power cuts the last line
    nlohmann::json object = testing::object_of_line(line);
    objects[object["step"]] = object;
  }
  return objects;
}

std::map<std::int64_t, nlohmann::json> records_on(MemoryDisk& disk) {
  const auto calls = disk.calls();
  return facts_of(records, *calls).kind == FileFacts::Kind::absent ? objects_in("")
                                                                   : objects_in(text_of(disk, records));
}

/// The newest checkpoint; every one that is complete by its name verifies. -1: there is none.
std::int64_t newest_on(MemoryDisk& disk) {
  const auto calls = disk.calls();
  const CheckpointFolders folders(*calls, root);
  const std::vector<std::int64_t> found = folders.steps();
  for (const std::int64_t step : found) EXPECT_NO_THROW(SavedStates(*calls, folders.path(step)).verify()) << step;
  return found.empty() ? -1 : found.front();
}

enum class Whose { first, last, all };

struct Failure {
  Whose whose;
  int call;
  int error;
  Fails fails;

  std::string describe() const {
    return text(whose == Whose::first  ? "the first rank's"
                : whose == Whose::last ? "the last rank's"
                                       : "every rank's",
                " call ", call, " fails ", fails == Fails::once ? "once" : "for good", ": ", std::strerror(error));
  }
};

class FailingDisk : public ::testing::Test {
 protected:
  FailingDisk() {
    whole_ = train(run_in_folder(), undisturbed_);
    EXPECT_EQ(whole_.error, "");
  }

  /// A run that was killed in its last step, with two checkpoints before it and a line beyond the newer one.
  static MemoryDisk broken_off() {
    MemoryDisk disk("/disk");
    BenchRun run = run_in_folder({"checkpoint.keep=2"});
    run.before_row = [first = row_of(run, steps, 0, 0), last = row_of(run, steps, 1, 0)](std::int64_t row) {
      if (row == first || row == last) throw Error("killed");  // both ranks at once
    };
    EXPECT_EQ(train(run, disk).error, "killed");
    EXPECT_EQ(newest_on(disk), steps - 1);
    return disk;
  }

  /// Runs on a copy of the disk, with one failure. False where no call was as late as that.
  bool try_one(const BenchRun& run, const MemoryDisk& before, const Failure& failure) {
    SCOPED_TRACE(failure.describe());
    MemoryDisk disk(before), former(before), kept = run.overwrite ? MemoryDisk("/disk") : before;
    CallPlan first{.fail_at = failure.call, .fail_with = failure.error, .fails = failure.fails}, last = first;
    BenchRun failing = run;
    if (failure.whose != Whose::last) failing.first_ranks_disk = &first;
    if (failure.whose != Whose::first) failing.last_ranks_disk = &last;
    const BenchResult found = train(failing, disk);
    if (first.failed + last.failed == 0) return false;
    ++cases_;
    const std::int64_t saved = std::max(newest_on(kept), found.saved_steps), newest = newest_on(disk);
    EXPECT_GE(newest, saved) << found.error;
    EXPECT_TRUE(is_refusal_in_order(found, former, disk))
        << "code " << int(found.code) << ", steps saved " << found.saved_steps << ": " << found.error;
    expect_records(disk, kept, newest);
    for (const std::string& file : disk.files()) EXPECT_THAT(file, Not(HasSubstr(".damaged")));
    if (failure.fails == Fails::once && (failure.error == EIO || !is_whole())) expect_to_go_on(run, disk);
    return true;
  }

  /// Before the first step a failure is exit code 2 or 1; with 2 the disk is as it was.
  static bool is_refusal_in_order(const BenchResult& found, MemoryDisk& former, MemoryDisk& disk) {
    if (found.error.empty()) return found.code == ExitCode::ok;
    EXPECT_THAT(found.error, HasSubstr("/disk/run"));
    if (found.code != ExitCode::bad_input) return true;
    EXPECT_EQ(contents_of(former), contents_of(disk)) << found.error;
    return found.saved_steps <= newest_on(former);
  }

  /// Every step up to the newest checkpoint has its line, in the file or in the checkpoint, which --resume writes.
  void expect_records(MemoryDisk& disk, MemoryDisk& former, std::int64_t newest) {
    const auto expected = records_on(undisturbed_);
    auto found = records_on(disk);
    const auto calls = disk.calls();
    if (newest >= 0)
      for (const auto& [step, object] :
           objects_in(read_manifest(*calls, CheckpointFolders(*calls, root).path(newest)).position.unwritten_records))
        found[step] = object;
    for (const auto& [step, object] : expected) {
      if (step <= newest || (step <= newest_on(former) && !records_on(former).empty()))
        EXPECT_EQ(found[step], object) << step;
    }
  }

  /// On a disk that works again the run comes to the undisturbed one's end.
  void expect_to_go_on(const BenchRun& run, MemoryDisk& disk) {
    BenchRun next = run;
    const auto calls = disk.calls();
    next.resume = !run.overwrite && facts_of(folder + "/config.toml", *calls).kind == FileFacts::Kind::file;
    const BenchResult found = train(next, disk);
    if (newest_on(disk) < 0) {  // it trained, and the disk took no checkpoint
      EXPECT_THAT(found.error, HasSubstr("--overwrite"));
      return;
    }
    ASSERT_EQ(found.error, "");
    expect_equal(found.weights, whole_.weights);
    EXPECT_EQ(records_on(disk), records_on(undisturbed_));
  }

  static bool is_whole() { return std::getenv("ZERO_WHOLE_WALK") != nullptr; }

  /// Every second call fails with EIO, the others in turn with another error. ZERO_WHOLE_WALK=1 tries all at each call.
  static std::vector<int> errors_at(int call) {
    const std::vector<int> others{ESTALE, EMFILE, EACCES, ENOMEM};
    if (is_whole()) return {EIO, ESTALE, EMFILE, EACCES, ENOMEM};
    return {call % 2 ? EIO : others[std::size_t(call / 2) % others.size()]};
  }

  /// Both on rank 0, which makes most calls, and one of them on the others.
  static std::vector<Fails> fails_at(int call, Whose whose) {
    if (is_whole() || whose == Whose::first) return {Fails::once, Fails::for_good};
    return {call / 2 % 2 ? Fails::once : Fails::for_good};
  }

  void walk(const BenchRun& run, const MemoryDisk& before) {
    int calls = 0;
    for (const Whose whose : {Whose::first, Whose::last, Whose::all})
      for (int call = 0, found = 1; found > 0 && !HasFailure(); ++call, calls += found > 0) {
        found = 0;
        for (const int error : errors_at(call))
          for (const Fails fails : fails_at(call, whose)) found += try_one(run, before, {whose, call, error, fails});
      }
    std::cout << calls << " calls, " << cases_ << " failures tried\n";
    EXPECT_GT(calls, 100);
  }

  MemoryDisk undisturbed_{"/disk"};
  BenchResult whole_;
  int cases_ = 0;
};

TEST_F(FailingDisk, ANewRunLosesNothing) { walk(run_in_folder(), MemoryDisk("/disk")); }

TEST_F(FailingDisk, AResumedRunLosesNothing) {
  BenchRun run = run_in_folder();
  run.resume = true;
  walk(run, broken_off());
}

// --overwrite alone removes what was there: by a start that is refused nothing.
TEST_F(FailingDisk, ARunThatIsOverwrittenIsWholeAfterARefusal) {
  BenchRun run = run_in_folder();
  run.overwrite = true;
  walk(run, broken_off());
}

// After every call of a run the power goes, some times over: no checkpoint is there without the lines up to its step.
TEST_F(FailingDisk, ALossOfPowerLeavesTheRecordsOfEveryCheckpoint) {
  MemoryDisk disk("/disk");
  std::mt19937 random(11);
  std::int64_t with_checkpoint = 0;
  disk.observer = [&](const MemoryDisk& now) {
    for (int i = 0; i < 20; ++i) {
      MemoryDisk left = now.after_power_loss(random);
      const std::int64_t newest = newest_on(left);
      with_checkpoint += newest > 0;
      if (newest > 0) expect_records(left, left, newest);
    }
  };
  EXPECT_EQ(train(run_in_folder(), disk).error, "");
  EXPECT_GT(with_checkpoint, 500);
}

}  // namespace
}  // namespace zero::testing
