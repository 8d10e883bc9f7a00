#include "zero/train/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <sstream>
#include <thread>

#include "base/log.h"

namespace zero {
namespace progress_test {

using ::testing::HasSubstr;

StepMetrics step(std::int64_t number, double seconds) {
  StepMetrics metrics;
  metrics.step = number;
  metrics.loss = 5.12344;
  metrics.lr = 9.8e-4;
  metrics.grad_norm = 0.8312;
  metrics.tokens_per_second = 18240;
  metrics.peak_bytes = 412ll << 20;
  metrics.seconds = seconds;
  return metrics;
}

int lines(const std::string& text) { return static_cast<int>(std::count(text.begin(), text.end(), '\n')); }

TEST(Progress, LineShowsTheFigures) {
  EXPECT_EQ(progress_line(step(20, 0), 300, 83.2),
            "step  20/300  loss  5.1234  lr 9.80e-04  norm 0.831   18.2k tok/s  tensors  412 MiB     1:23 left");
  StepMetrics metrics = step(20, 0);
  metrics.validation_loss = 4.5;
  EXPECT_THAT(progress_line(metrics, 300, 7383.0), HasSubstr("validation 4.5000"));
  EXPECT_THAT(progress_line(metrics, 300, 7383.0), HasSubstr("2:03:03 left"));
}

TEST(Progress, FieldsKeepTheirWidth) {
  StepMetrics metrics = step(7, 0);
  const std::size_t width = progress_line(metrics, 300, 83.2).size();
  for (const double norm :
       {1.9, 1.97, 0.0, 9.9994, 9.9996, 12.0, 999.94, 99998.0, 3e-5, 4e12, double(NAN), -double(NAN)}) {
    metrics.grad_norm = norm;
    EXPECT_EQ(progress_line(metrics, 300, 83.2).find("-nan"), std::string::npos);
    EXPECT_EQ(progress_line(metrics, 300, 83.2).size(), width) << norm;
  }
  for (const double rate : {0.7, 99.0, 4481.0, 18240.0, 999900.0, 2.5e6}) {
    metrics.tokens_per_second = rate;
    EXPECT_EQ(progress_line(metrics, 300, 9.0).size(), width) << rate;
  }
  metrics.loss = 10.4359;
  metrics.peak_bytes = 3ll << 30;
  EXPECT_EQ(progress_line(metrics, 300, 7383.0).size(), width);
}

TEST(Progress, AShortLineKeepsTheTimeLeft) {
  EXPECT_EQ(progress_line(step(20, 0), 300, 83.2, 79),
            "step  20/300  loss  5.1234  lr 9.80e-04  norm 0.831   18.2k tok/s     1:23 left");
  EXPECT_EQ(progress_line(step(20, 0), 300, 83.2, 60), "step  20/300  loss  5.1234   18.2k tok/s     1:23 left");
  StepMetrics metrics = step(20, 0);
  metrics.validation_loss = 4.5;
  metrics.skipped = 3;
  EXPECT_EQ(progress_line(metrics, 100000, 360000.0, 79),
            "step     20/100000  loss  5.1234  validation 4.5000  100:00:00 left");
  EXPECT_EQ(progress_line(metrics, 300, 83.2, 10), "step  20/3");
}

TEST(Progress, TheClosingLinesCoverTheWholeRun) {
  StepMetrics metrics = step(300, 185);
  metrics.tokens = 614400;
  EXPECT_EQ(closing_lines(metrics, metrics, 521ll << 20),
            "trained 300 steps in 3:05: 0.617 s a step overall, 3321 tokens/s; loss 5.1234\n"
            "memory at its peak: tensors 412 MiB on the fullest rank; the whole process of rank 0 521 MiB");
  metrics.validation_loss = 4.5;
  metrics.skipped = 2;
  EXPECT_THAT(closing_lines(metrics, metrics, 0),
              HasSubstr("loss 5.1234, validation 4.5000, 2 of the steps skipped\n"));
}

TEST(Progress, MeansOfAResumedRunAreThoseOfThisStart) {
  StepMetrics before = step(200, 1000), last = step(300, 1050);
  before.tokens = 400000, last.tokens = 600000;
  EXPECT_THAT(
      closing_lines(last, last, 0, before),
      HasSubstr("trained 300 steps in 17:30, 100 of them since the last start: 0.5 s a step overall, 4000 tokens/s;"));
  std::ostringstream out;
  Progress progress(out, {.total_steps = 1000, .interval = 1, .before = before});
  StepMetrics owed = step(200, 1020);
  owed.validation_loss = 4.5;
  progress.show(owed);  // its validation was left to this start
  EXPECT_THAT(out.str(), HasSubstr("1:06:40 left"));
  progress.show(step(201, 1030));
  EXPECT_THAT(out.str(), HasSubstr("1:06:35 left"));  // 5 s a step, as before
  progress.show(step(202, 1030.5));
  progress.show(step(203, 1031));
  EXPECT_THAT(out.str(), HasSubstr("6:39 left"));
  progress.close(0);
  EXPECT_THAT(out.str(), HasSubstr("3 of them since the last start"));
}

TEST(Progress, TheClosingLinesHaveTheLastFiniteLoss) {
  StepMetrics last = step(300, 185);
  last.loss = std::nan("");
  last.skipped = 2;
  EXPECT_THAT(closing_lines(last, step(298, 183), 0),
              HasSubstr("; loss 5.1234 in step 298, the last step was passed over, 2 of the steps skipped\n"));
  EXPECT_THAT(closing_lines(last, {}, 0), HasSubstr("; the last step was passed over, 2 of the steps skipped\n"));
  std::ostringstream out;
  Progress progress(out, {.total_steps = 300});
  progress.show(step(298, 183));
  progress.show(last);
  progress.close(0);
  EXPECT_THAT(out.str(), HasSubstr("; loss 5.1234 in step 298, the last step was passed over"));
}

TEST(Progress, PlainLinesComePerIntervalWithFirstAndLast) {
  std::ostringstream out;
  Progress progress(out, {.total_steps = 25, .interval = 10, .columns = 0});
  for (int i = 1; i <= 25; ++i) progress.show(step(i, i));
  progress.finish();
  EXPECT_EQ(lines(out.str()), 4);  // 1, 10, 20, 25
  EXPECT_EQ(out.str().find('\r'), std::string::npos);
}

TEST(Progress, TheSlowFirstStepDoesNotCountForTheTimeLeft) {
  std::ostringstream out;
  Progress progress(out, {.total_steps = 100, .interval = 1, .columns = 0});
  progress.show(step(1, 60));
  for (int i = 2; i <= 50; ++i) progress.show(step(i, 60 + (i - 1)));
  EXPECT_THAT(out.str(), HasSubstr("step  50/100"));
  EXPECT_THAT(out.str(), HasSubstr("0:50 left"));
}

TEST(Progress, AValidationDoesNotCountForTheTimeLeft) {
  std::ostringstream out;
  Progress progress(out, {.total_steps = 100, .interval = 1, .columns = 0});
  for (int i = 1; i <= 49; ++i) progress.show(step(i, i));
  StepMetrics validated = step(50, 500);
  validated.validation_loss = 4.5;
  progress.show(validated);
  progress.show(step(51, 501));
  EXPECT_THAT(out.str(), HasSubstr("0:50 left"));
  EXPECT_TRUE(out.str().ends_with("0:49 left\n")) << out.str();
}

TEST(Progress, ATerminalsLineIsRewrittenAndCutToItsWidth) {
  std::ostringstream out;
  Progress progress(out, {.total_steps = 9, .interval = 0, .columns = 21});
  progress.show(step(1, 1));
  progress.show(step(2, 2));
  EXPECT_EQ(lines(out.str()), 0);
  progress.finish();
  progress.finish();
  EXPECT_EQ(out.str(), "\r\033[Kstep 1/9\r\033[Kstep 2/9\n");
}

TEST(Progress, LinesWithAValidationLossStayOnTheTerminal) {
  std::ostringstream out;
  Progress progress(out, {.total_steps = 9, .interval = 0, .columns = 80});
  StepMetrics metrics = step(3, 3);
  metrics.validation_loss = 4.0;
  progress.show(metrics);
  EXPECT_EQ(lines(out.str()), 1);
}

TEST(Progress, TheLogsLinesTakeThePlaceOfTheOpenLine) {
  std::ostringstream out;
  ::testing::internal::CaptureStderr();
  {
    Progress progress(out, {.total_steps = 9, .columns = 21});
    log_warning("before the first step");
    progress.show(step(1, 1));
    log_warning("behind a step");
    log_warning("behind a warning");
    progress.show(step(2, 2));
  }
  log_warning("behind the run");
  EXPECT_EQ(
      ::testing::internal::GetCapturedStderr(),
      "warning: before the first step\n\r\033[Kwarning: behind a step\nwarning: behind a warning\nwarning: behind the run\n");
  EXPECT_EQ(out.str(), "\r\033[Kstep 1/9\r\033[Kstep 2/9\n");
}

TEST(Progress, AMinuteNeverPassesWithoutAPlainLine) {
  for (const double seconds : {1.0, 7.0, 45.0}) {
    std::ostringstream out;
    Progress progress(out, {.total_steps = 100000, .columns = 0});
    for (int i = 1; i <= 400; ++i) progress.show(step(i, i * seconds));
    EXPECT_GE(lines(out.str()), int(400 * seconds / 60)) << seconds;
    EXPECT_LE(lines(out.str()), int(400 * seconds / 30) + 2) << seconds;
  }
}

TEST(Progress, SaysThatItLivesWhileNoStepEnds) {
  std::ostringstream out;
  {
    Progress progress(out, {.total_steps = 9, .columns = 0, .silence = std::chrono::milliseconds(30)});
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    progress.show(step(1, 0.2));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    progress.close(1 << 20);
  }
  EXPECT_THAT(out.str(), ::testing::StartsWith("0:00 since the start, no step has ended yet\n"));
  EXPECT_THAT(out.str(), HasSubstr("0:00 since step 1/9\n"));
  EXPECT_THAT(out.str(), ::testing::EndsWith(" MiB\n"));
}

TEST(Progress, SaysOnATerminalToo) {
  std::ostringstream out;
  {
    Progress progress(out, {.total_steps = 9, .columns = 80, .silence = std::chrono::milliseconds(30)});
    progress.show(step(1, 0.2));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_THAT(out.str(), HasSubstr("412 MiB\n0:00 since step 1/9\n"));
}

}  // namespace progress_test
}  // namespace zero
