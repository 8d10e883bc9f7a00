#include "zero/report/reported_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"
#include "zero/report/report_page.h"
#include "zero/report/running.h"

namespace zero {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

void put(const std::string& path, const std::string& content) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << content;
}

TEST(RunSettings, AreTheKeysOfTheFile) {
  const RunSettings settings = parse_settings("[a]\nx = 1\ny = \"</script>\"\nz = [1, 0.9]\n[a.b]\nw = true\n");
  EXPECT_EQ(settings.at("a.x"), "1");
  EXPECT_EQ(settings.at("a.y"), "</script>");
  EXPECT_EQ(settings.at("a.b.w"), "true");
  EXPECT_EQ(settings.at("a.z"), "[1, 0.9]");
  EXPECT_THAT(message_of<InputError>([] { parse_settings("a = \n"); }), HasSubstr("not valid TOML"));
}

TEST(RunSettings, DifferWhereARunHasAnother) {
  const RunSettings one{{"a", "1"}, {"b", "2"}, {"job.output_dir", "x"}},
      two{{"a", "1"}, {"b", "3"}, {"c", "4"}, {"job.output_dir", "y"}}, none;
  EXPECT_THAT(differing_keys({&one, &two}), ElementsAre("b", "c"));
  EXPECT_THAT(differing_keys({&one, &one, &none}), IsEmpty()) << "a run without configuration says nothing";
}

TEST(RunHeader, IsReadAsItIsWritten) {
  for (const int start : {1, 2, 17}) {
    const RunHeader header = run_header_of(RunHeader{"0.1.0 (commit abc)", 3, start}.line() + "[job]\n");
    EXPECT_EQ(header.version, "0.1.0 (commit abc)");
    EXPECT_EQ(header.ranks, 3);
    EXPECT_EQ(header.start, start);
  }
  EXPECT_EQ((RunHeader{"1", 1, 1}.line()), "# zero_train 1, 1 rank\n");
  EXPECT_EQ((RunHeader{"1", 2, 3}.line()), "# zero_train 1, 2 ranks, start 3\n");
  EXPECT_EQ(run_header_of("[job]\n").ranks, 0);
  EXPECT_EQ(run_header_of("").start, 1);
}

TEST(ReportedRun, HasItsFigures) {
  const TemporaryFolder folder;
  put(folder.path() + "/config.toml", "# zero_train 0.1.0, 2 ranks, start 3\n[training]\nsteps = 3\n");
  put(folder.path() + "/metrics.jsonl",
      "{\"step\": 1, \"loss\": 3, \"tokens\": 10, \"seconds\": 1, \"tokens_per_second\": 9, \"peak_bytes\": 7}\n"
      "{\"step\": 2, \"loss\": 1, \"tokens\": 20, \"seconds\": 2, \"tokens_per_second\": 5, \"peak_bytes\": 6, \"validation_loss\": 4}\n"
      "{\"step\": 3, \"loss\": null, \"tokens\": 30, \"seconds\": 4, \"tokens_per_second\": 4, \"peak_bytes\": 5}\n");
  ReportedRun run = read_run(folder.path(), 10'000);
  EXPECT_EQ(run.state, RunState::stopped) << "without a result";
  EXPECT_EQ(run.restarts, 2);
  EXPECT_EQ(run.header.ranks, 2);
  EXPECT_EQ(run.figures.steps, 3);
  EXPECT_EQ(run.figures.best_loss, 1);
  EXPECT_TRUE(std::isnan(*run.figures.final_loss));
  EXPECT_EQ(run.figures.validation_loss, 4);
  EXPECT_EQ(run.figures.peak_bytes, 7);
  EXPECT_EQ(run.figures.rate, 5);
  EXPECT_THAT(run.tokens, ElementsAre(10, 20, 30));
  EXPECT_THAT(run.notes, testing::Contains(HasSubstr("not finite, shown as gaps: loss 1")));
  put(folder.path() + "/model/model.safetensors", "");
  EXPECT_EQ(read_run(folder.path(), 10'000).state, RunState::finished);
  const int held = ::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(held, LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(read_run(folder.path(), 10'000).state, RunState::running) << "as long as its lock is held";
  ::close(held);
  EXPECT_FALSE(is_running(folder.path()));
}

TEST(ReportedRun, IsOfAFolderOfARun) {
  const TemporaryFolder folder;
  const std::string run = folder.path() + "/run";
  put(folder.path() + "/words.txt", "words");
  for (const std::string& path : {folder.path(), folder.path() + "/words.txt"})
    EXPECT_THAT(message_of<InputError>([&] { run_folder_of(path); }),
                HasSubstr(path + ": is no output directory of a run"));
  EXPECT_THAT(message_of<InputError>([&] { run_folder_of(run); }), HasSubstr(run + ": does not exist"));
  put(run + "/.zero_run", "");
  EXPECT_EQ(run_folder_of(run + "/"), run);
  EXPECT_THAT(read_run(run, 1000).notes, testing::Contains("no step is logged yet"));
  put(run + "/metrics.jsonl", "");
  EXPECT_EQ(run_folder_of(run + "/metrics.jsonl"), run);
}

TEST(ReportedRun, HasTheShortestNameOfItsOwn) {
  std::vector<ReportedRun> runs(4);
  runs[0].folder = "/x/lr1/run";
  runs[1].folder = "/x/lr2/run";
  runs[2].folder = "/x/other";
  runs[3].folder = "/x/other/";
  name_runs(runs);
  EXPECT_EQ(runs[0].name, "lr1/run");
  EXPECT_EQ(runs[1].name, "lr2/run");
  EXPECT_EQ(runs[2].name, "other");
}

TEST(ReportPage, NoTextEndsItsScript) {
  std::vector<ReportedRun> runs(1);
  runs[0].name = "</script><b>\xff\"";
  runs[0].settings["a"] = "<!--";
  runs[0].notes.push_back("<script>");
  const std::string page = report_page(runs, {"1", "now", std::nullopt});
  EXPECT_THAT(page, HasSubstr(R"(\u003c/script>\u003cb>)"));
  EXPECT_THAT(page, Not(HasSubstr("</script><b>")));
  EXPECT_TRUE(is_report_page(page));
  EXPECT_FALSE(is_report_page("<!DOCTYPE html>\n<html>"));
}

TEST(ReportPage, StaysSmall) {
  const TemporaryFolder folder;
  std::string lines;
  for (int step = 1; step <= 20'000; ++step) {
    lines += "{\"step\": " + std::to_string(step);
    for (const char* field : {"loss", "lr", "grad_norm", "tokens", "seconds", "tokens_per_second", "peak_bytes"})
      lines += std::string(", \"") + field + "\": " + std::to_string(step * 1.2345678);
    lines += "}\n";
  }
  put(folder.path() + "/metrics.jsonl", lines);
  std::vector<ReportedRun> runs;
  for (int i = 0; i < 100; ++i) runs.push_back(i == 0 ? read_run(folder.path(), page_numbers / 100) : runs.front());
  EXPECT_LT(report_page(runs, {"1", "now", std::nullopt}).size(), 5'000'000);
  const ReportedRun alone = read_run(folder.path(), page_numbers);
  EXPECT_LT(report_page({alone}, {"1", "now", std::nullopt}).size(), 5'000'000);
  EXPECT_TRUE(alone.curves.front().is_thinned);
  EXPECT_THAT(alone.notes, testing::Contains(HasSubstr("20000 lines are drawn as")));
}

}  // namespace
}  // namespace zero
