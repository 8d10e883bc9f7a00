// Traces of simulated ranks: complete JSON whose slices add up, and a disk that fills up.
#include "zero/train/records/step_trace.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "comm/sim/sim_world.h"
#include "tests/unit/train/full_disk.h"
#include "zero/train/records/trace_text.h"

namespace zero::testing {
namespace step_trace_test {

class StepTraces : public ::testing::Test {
 protected:
  ~StepTraces() override { std::filesystem::remove_all(folder_); }

  /// Ranks whose steps have `calls` calls each.
  void trace(int ranks, std::int64_t first, std::int64_t last, int calls) const {
    SimWorld world(ranks);
    world.run([&](Communicator& communicator, int) {
      StepTrace trace(folder_, communicator);
      for (std::int64_t step = first; step <= last; ++step) {
        ActivityClock clock;
        const ActivityClockScope scope(clock);
        clock.begin(StepTrace::most_slices);
        for (int call = 0; call < calls; ++call) {
          const ActivityScope gather({Activity::gathers, "all_gather", "forward", call, 64});
          const ActivityScope disk({Activity::disk, "read"});
        }
        clock.end();
        trace.add(step, clock);
      }
    });
  }

  nlohmann::json events(std::int64_t first) const {
    std::ifstream file(folder_ + "/steps-" + std::to_string(first) + ".json");
    return nlohmann::json::parse(file).at("traceEvents");
  }

  std::string folder_ = ::testing::TempDir() + "zero_trace_" + std::to_string(::getpid());
};

TEST_F(StepTraces, EveryRankHasItsTracks) {
  trace(3, 5, 6, 4);
  std::map<int, std::set<std::string>> names;
  std::map<int, double> steps, slices;
  for (const auto& event : events(5)) {
    const int rank = event.at("pid").get<int>() - 1;
    if (event.at("ph") == "M") {
      names[rank].insert(event.at("args").at("name").get<std::string>());
      continue;
    }
    EXPECT_EQ(event.at("ph"), "X");
    EXPECT_GE(event.at("ts").get<double>(), 0);
    EXPECT_GE(event.at("dur").get<double>(), 0);
    const bool step = event.at("name").get<std::string>().starts_with("step ");
    (step ? steps : slices)[rank] += event.at("dur").get<double>();
    EXPECT_TRUE(step || event.at("cat") != "gathers" || event.at("args").at("bytes") == 64);
  }
  ASSERT_EQ(names.size(), 3u);
  for (const auto& [rank, tracks] : names) {
    EXPECT_EQ(tracks,
              (std::set<std::string>{"rank " + std::to_string(rank), "steps", "compute", "communication", "disk"}));
    EXPECT_NEAR(slices[rank], steps[rank], 1e-6 * steps[rank] + 0.001);
  }
}

// A piece that rank 0 receives is much smaller.
TEST_F(StepTraces, LongStepsComeInPieces) {
  trace(2, 1, 1, 20000);
  std::map<int, int> calls;
  for (const auto& event : events(1)) calls[event.at("pid").get<int>() - 1] += event.value("name", "") == "all_gather";
  EXPECT_EQ(calls[0], calls[1]);
  EXPECT_GE(calls[0], 20000);
}

TEST_F(StepTraces, AFullDiskCostsTheTraceAlone) {
  std::filesystem::create_directories(folder_);
  {
    const FullDisk disk(100 << 10);
    trace(2, 1, 2, 5000);  // must not throw, or hang
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(StepTraces, ClocksOfOneNodeAgree) {
  SimWorld world(3);
  world.run([](Communicator& ranks, int) { EXPECT_EQ(clock_shift(ranks), 0); });
}

TEST(TraceText, TimesAreNotRounded) {
  const TimeSlice slice{1'234'567'890'123, 1'234'567'890'124, {Activity::disk, "read", nullptr, -1, 7}};
  const auto event = slice_event(2, slice, -1'000'000'000'000);
  EXPECT_EQ(
      event,
      R"({"ph":"X","pid":3,"tid":12,"ts":234567890.123,"dur":0.001,"name":"read","cat":"disk","args":{"bytes":7}})");
}

}  // namespace step_trace_test
}  // namespace zero::testing
