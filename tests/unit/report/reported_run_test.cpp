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
  const RunHeader later{"1", 2, 3, 40};
  EXPECT_EQ(later.line(), "# zero_train 1, 2 ranks, start 3 after step 40\n");
  EXPECT_EQ(run_header_of(later.line()).steps_before, 40);
  EXPECT_EQ(run_header_of(later.line()).start, 3);
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
  ReportedRun run = read_run(folder.path(), {10'000, 10'000});
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
  EXPECT_EQ(read_run(folder.path(), {10'000, 10'000}).state, RunState::finished);
  const int held = ::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(held, LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(read_run(folder.path(), {10'000, 10'000}).state, RunState::running) << "as long as its lock is held";
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
  EXPECT_THAT(read_run(run, {1000, 1000}).notes, testing::Contains("no step is logged yet"));
  put(run + "/metrics.jsonl", "");
  EXPECT_EQ(run_folder_of(run + "/metrics.jsonl"), run);
}

std::string sample_line(int step, const std::string& prompt, const std::string& text) {
  return "{\"step\": " + std::to_string(step) + ", \"prompt\": \"" + prompt + "\", \"text\": \"" + text + "\"}\n";
}

std::vector<std::int64_t> steps_of_samples(const ReportedRun& run) {
  std::vector<std::int64_t> steps;
  for (const ReportedSamples& of : run.samples) steps.push_back(of.step);
  return steps;
}

TEST(ReportedRun, HasItsSamplesByStep) {
  const TemporaryFolder folder;
  put(folder.path() + "/metrics.jsonl", "");
  EXPECT_THAT(read_run(folder.path(), {1000, 1000}).samples, IsEmpty());
  put(folder.path() + "/samples.jsonl",
      sample_line(2, "a", "1") + sample_line(2, "b", "2") + sample_line(4, "a", "3") + "{\"step\": 6,");
  const ReportedRun run = read_run(folder.path(), {1000, 1000});
  EXPECT_THAT(steps_of_samples(run), ElementsAre(2, 4));
  EXPECT_THAT(run.samples[0].samples, ElementsAre(Sample{"a", "1"}, Sample{"b", "2"}));
  EXPECT_THAT(run.notes, ElementsAre("config.toml is missing: its settings are unknown", "no step is logged yet"));
  const std::string page = report_page({run}, {"1", "now", std::nullopt});
  EXPECT_THAT(page, HasSubstr(R"("samples":[{"step":2,"rows":[["a","1"],["b","2"]]},{"step":4,"rows":[["a","3"]]}])"));
  // A run that went back to step 2 and has begun step 4 again.
  put(folder.path() + "/samples.jsonl",
      sample_line(2, "a", "1") + sample_line(4, "a", "2") + sample_line(6, "a", "3") + sample_line(4, "a", "4"));
  const ReportedRun again = read_run(folder.path(), {1000, 1000});
  EXPECT_THAT(steps_of_samples(again), ElementsAre(2, 4));
  EXPECT_EQ(again.samples[1].samples[0].text, "4");
}

TEST(ReportedRun, KeepsTheNewestSamplesThatHaveRoom) {
  const TemporaryFolder folder;
  put(folder.path() + "/metrics.jsonl", "");
  std::string lines;
  for (int step = 1; step <= 100; ++step) lines += sample_line(step, "a", std::string(68, 'x'));  // 101 with its frame
  put(folder.path() + "/samples.jsonl", lines);
  ReportedRun run = read_run(folder.path(), {1000, 505});
  EXPECT_THAT(steps_of_samples(run), ElementsAre(96, 97, 98, 99, 100));
  EXPECT_THAT(run.notes, testing::Contains(HasSubstr("samples.jsonl has all")));
  // One that is too long by itself is left out alone.
  put(folder.path() + "/samples.jsonl",
      sample_line(1, "a", "1") + sample_line(2, "a", std::string(100, '<')) + sample_line(2, "b", "2"));
  run = read_run(folder.path(), {1000, 505});
  ASSERT_THAT(steps_of_samples(run), ElementsAre(1, 2));
  EXPECT_THAT(run.samples[1].samples, ElementsAre(Sample{"b", "2"}));
  // A step that is too long keeps its first samples.
  lines.clear();
  for (int i = 0; i < 100; ++i) lines += sample_line(7, "a", std::string(68, 'x'));
  put(folder.path() + "/samples.jsonl", lines);
  run = read_run(folder.path(), {1000, 505});
  ASSERT_THAT(steps_of_samples(run), ElementsAre(7));
  EXPECT_EQ(run.samples[0].samples.size(), 5);
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
  runs[0].samples.push_back({1, {{"</script><b>", "<!--"}}});
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
  for (int i = 0; i < 100; ++i) runs.push_back(i == 0 ? read_run(folder.path(), page_room(100)) : runs.front());
  EXPECT_LT(report_page(runs, {"1", "now", std::nullopt}).size(), 5'000'000);
  const ReportedRun alone = read_run(folder.path(), page_room(1));
  EXPECT_LT(report_page({alone}, {"1", "now", std::nullopt}).size(), 5'000'000);
  EXPECT_TRUE(alone.curves.front().is_thinned);
  EXPECT_THAT(alone.notes, testing::Contains(HasSubstr("20000 lines are drawn as")));
  // Samples of every run, with texts that JSON makes six times as long.
  lines.clear();
  for (int step = 1; step <= 5'000; ++step) lines += sample_line(step, "<<<<", std::string(100, '<'));
  put(folder.path() + "/samples.jsonl", lines);
  const ReportedRun with_samples = read_run(folder.path(), page_room(100));
  EXPECT_FALSE(with_samples.samples.empty());
  for (ReportedRun& run : runs) run.samples = with_samples.samples;
  EXPECT_LT(report_page(runs, {"1", "now", std::nullopt}).size(), 5'000'000);
}

}  // namespace
}  // namespace zero
