#include "zero/train/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace zero {
namespace {

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
            "step  20/300  loss 5.1234  lr 9.80e-04  norm 0.831  18.2k tokens/s  peak 412 MiB  1:23 left");
  StepMetrics metrics = step(20, 0);
  metrics.validation_loss = 4.5;
  EXPECT_THAT(progress_line(metrics, 300, 7383.0), HasSubstr("validation 4.5000"));
  EXPECT_THAT(progress_line(metrics, 300, 7383.0), HasSubstr("2:03:03 left"));
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

TEST(Progress, ATerminalsLineIsRewrittenAndCutToItsWidth) {
  std::ostringstream out;
  Progress progress(out, {.total_steps = 9, .interval = 0, .columns = 21});
  progress.show(step(1, 1));
  progress.show(step(2, 2));
  EXPECT_EQ(lines(out.str()), 0);
  progress.finish();
  progress.finish();
  EXPECT_EQ(out.str(), "\r\033[Kstep 1/9  loss 5.123\r\033[Kstep 2/9  loss 5.123\n");
}

TEST(Progress, LinesWithAValidationLossStayOnTheTerminal) {
  std::ostringstream out;
  Progress progress(out, {.total_steps = 9, .interval = 0, .columns = 80});
  StepMetrics metrics = step(3, 3);
  metrics.validation_loss = 4.0;
  progress.show(metrics);
  EXPECT_EQ(lines(out.str()), 1);
}

}  // namespace
}  // namespace zero
