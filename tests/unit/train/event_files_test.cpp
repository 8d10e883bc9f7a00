#include "zero/train/records/event_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/files/lookup.h"
#include "tests/unit/temporary_folder.h"
#include "tests/unit/train/full_disk.h"
#include "zero/train/records/event_record.h"

namespace zero {
namespace {

StepMetrics logged(std::int64_t number) {
  StepMetrics metrics;
  metrics.step = number;
  metrics.time = double(number);
  return metrics;
}

class EventFolder : public ::testing::Test {
 protected:
  /// The steps of each file, in the order of their names; a session begins as its step, negative.
  std::vector<std::vector<std::int64_t>> files() const {
    std::vector<std::vector<std::int64_t>> found;
    for (const std::string& name : names_in(tb_)) {
      std::stringstream text;
      text << std::ifstream(tb_ + "/" + name, std::ios::binary).rdbuf();
      const std::string content = text.str();
      std::string_view rest = content;
      EXPECT_TRUE(take_record(rest));  // the version
      found.emplace_back();
      while (const auto event = take_record(rest))
        found.back().push_back(event->begins_session ? -event->step : event->step);
      EXPECT_TRUE(rest.empty());
    }
    return found;
  }
  using Steps = std::vector<std::vector<std::int64_t>>;

  TemporaryFolder folder_;
  std::string tb_ = folder_ / "run/tb";
};

TEST_F(EventFolder, AStartFollowsTheFilesOfEarlierOnes) {
  for (int start = 0; start < 3; ++start) {
    EventFiles events(tb_);
    EXPECT_EQ(events.last_step(), 2 * start);
    events.begin_after(2 * start);
    for (int i = 1; i <= 2; ++i) events.write(logged(2 * start + i));
    EXPECT_EQ(files().back().back(), 2 * start + 2) << "not at once";
  }
  EXPECT_EQ(files(), (Steps{{1, 2}, {-3, 3, 4}, {-5, 5, 6}}));
}

TEST_F(EventFolder, StepsThatComeAgainBeginASession) {
  {
    EventFiles events(tb_);
    events.begin_after(0);
    for (int i = 1; i <= 5; ++i) events.write(logged(i));
    events.begin_after(2);
    EXPECT_EQ(events.last_step(), 2);
    events.write(logged(3));
  }
  EXPECT_EQ(files(), (Steps{{1, 2, 3, 4, 5}, {-3, 3}}));
  EXPECT_EQ(EventFiles(tb_).last_step(), 3);
}

TEST_F(EventFolder, AFullDiskDelaysStepsAndTearsNone) {
  EventFiles events(tb_);
  events.begin_after(0);
  events.write(logged(1));
  const auto before = std::filesystem::file_size(tb_ + "/" + names_in(tb_).front());
  for (const int more : {0, 1, 40}) {
    const testing::FullDisk full(before + rlim_t(more));
    events.write(logged(events.last_step() + 1));
    EXPECT_EQ(files(), (Steps{{1}})) << more;
  }
  events.write(logged(5));
  EXPECT_EQ(files(), (Steps{{1, 2, 3, 4, 5}}));
}

TEST_F(EventFolder, WaitingStepsMoveToTheNextFile) {
  EventFiles events(tb_);
  events.begin_after(0);
  events.write(logged(1));
  {
    const testing::FullDisk full(10);
    for (int i = 2; i <= 4; ++i) events.write(logged(i));
  }
  events.begin_after(3);
  events.write(logged(4));
  EXPECT_EQ(files(), (Steps{{1}, {-2, 2, 3, 4}}));
}

TEST_F(EventFolder, ATornEndDoesNotCount) {
  {
    EventFiles events(tb_);
    events.begin_after(0);
    for (int i = 1; i <= 3; ++i) events.write(logged(i));
  }
  const std::string file = tb_ + "/" + names_in(tb_).front();
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  EXPECT_EQ(EventFiles(tb_).last_step(), 2);
}

TEST_F(EventFolder, SamplesAreATableInTheRecordOfTheirStep) {
  {
    EventFiles events(tb_);
    events.begin_after(0);
    events.write(logged(1), {{"two\nlines", "<b>"}});
    // A record that is longer than a block of the reader.
    events.write(logged(2), {{"long", std::string(3 << 20, 'x')}});
    events.write(logged(3));
  }
  EXPECT_EQ(files(), (Steps{{1, 2, 3}}));
  EXPECT_EQ(EventFiles(tb_).last_step(), 3);
  std::stringstream text;
  text << std::ifstream(tb_ + "/" + names_in(tb_).front(), std::ios::binary).rdbuf();
  for (const char* piece : {"samples", "**prompt**", "**continuation**", "    two\n    lines", "    <b>"})
    EXPECT_NE(text.str().find(piece), std::string::npos) << piece;
}

TEST_F(EventFolder, AFolderThatCannotBeMadeIsToldOf) {
  folder_.write("run", "a file");
  EXPECT_THROW(EventFiles{tb_}, Error);
}

}  // namespace
}  // namespace zero
