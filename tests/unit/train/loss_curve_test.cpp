// Which runs end with a warning about their losses.
#include "zero/train/loss_curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>

#include "tests/unit/temporary_folder.h"
#include "zero/train/metrics.h"

namespace zero {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t vocabulary = 49152;  // whose logarithm is 10.8027

std::string doubt(const std::vector<double>& losses, std::int64_t ids = vocabulary) {
  return doubt_about_losses(losses, ids, "optimizer.lr");
}

std::string line(std::int64_t step, double loss) {
  StepMetrics metrics;
  metrics.step = step;
  metrics.loss = loss;
  return format_metrics(metrics);
}

/// A course times exp(noise), with normal noise.
template <class Course>
std::vector<double> noisy(std::size_t steps, double deviation, unsigned seed, const Course& course) {
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(0, deviation);
  std::vector<double> losses;
  for (std::size_t i = 0; i < steps; ++i) losses.push_back(course(double(i) / double(steps)) * std::exp(noise(random)));
  return losses;
}

TEST(LossCurve, WarnsWhereAModelLosesAllThatItKnew) {
  std::vector<double> losses(18, 10.8027);
  losses[0] = 4.5;
  EXPECT_EQ(
      doubt(losses),
      "the loss ends at 10.8027, what guessing among 49152 tokens gives (ln 49152 = 10.8027), and was 4.5000 before; "
      "the run has lost what the model knew: lower optimizer.lr, warm up longer, or start again from an earlier model");
  losses.resize(4);
  EXPECT_THAT(doubt(losses), HasSubstr("has lost what the model knew"));
}

TEST(LossCurve, WarnsWhereTheLossRises) {
  for (const double deviation : {0.0, 0.02, 0.05})
    for (unsigned seed = 0; seed < 20; ++seed)
      EXPECT_THAT(doubt(noisy(40, deviation, seed, [](double part) { return part < 0.5 ? 4 - part : 4 + 2 * part; })),
                  AllOf(HasSubstr(", above the "), HasSubstr(" that it began with; the run has diverged: lower")));
  EXPECT_THAT(doubt({10.4, 9.5, 8.9, 8.4, 8.2, 8.1, 12, 14, 14, 14, 14, 14}),
              AllOf(HasSubstr("ends at 14.0000, and was 8.1000 before"), Not(HasSubstr("guessing"))));
}

TEST(LossCurve, WarnsOfAJumpInTheFirstStepsWhereLaterLossesFallAgain) {
  const std::vector<double> after{3000, 4100, 2900, 2500, 2200, 2300, 1800, 1500, 1360,
                                  1110, 1176, 998,  533,  545,  382,  353,  254};
  for (const std::vector<double>& begin : {std::vector<double>{6.2}, {6.2, 6.1}, {6.2, 6.1, 5.9}}) {
    std::vector<double> losses = begin;
    losses.insert(losses.end(), after.begin(), after.end());
    EXPECT_THAT(doubt(losses, 512), AllOf(HasSubstr(", above the "), HasSubstr("the run has diverged")))
        << begin.size();
  }
}

TEST(LossCurve, IsSilentWhereSomeRowsAreEasy) {
  int doubts = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    std::mt19937 random(seed);
    std::bernoulli_distribution easy(0.2);
    std::normal_distribution<double> noise(0, 0.1);
    std::vector<double> losses;
    for (int i = 0; i < 16 + int(seed % 50); ++i)
      losses.push_back((easy(random) ? 0.05 : 1.0) * std::exp(noise(random)));
    doubts += !doubt(losses).empty();
  }
  EXPECT_LE(doubts, 20) << "of 1000 runs with batches of one";
}

TEST(LossCurve, WarnsWhereALongRunLearnsNothing) {
  EXPECT_THAT(doubt(std::vector<double>(60, 10.8)), HasSubstr("has learned nothing"));
  EXPECT_EQ(doubt(std::vector<double>(40, 10.8)), "") << "pretraining begins there";
  EXPECT_EQ(doubt(std::vector<double>(60, 10.2)), "");
}

TEST(LossCurve, IsSilentAboutSoundRuns) {
  for (const std::size_t steps : {1U, 2U, 3U, 4U, 8U, 15U, 16U, 18U, 40U, 100U, 1000U})
    for (const double deviation : {0.0, 0.02, 0.1, 0.3})
      for (unsigned seed = 0; seed < 100; ++seed) {
        const auto falls = [](double part) { return 1 + 3 * std::exp(-5 * part); };
        const auto pretrains = [](double part) { return 4 + 6.8 * std::exp(-5 * part); };
        const auto stays = [](double) { return 1.2; };  // a model that knows its data already
        const auto creeps = [](double part) { return 1.2 + 0.03 * part; };
        EXPECT_EQ(doubt(noisy(steps, deviation, seed, falls)), "") << steps << ' ' << deviation << ' ' << seed;
        EXPECT_EQ(doubt(noisy(steps, deviation, seed, pretrains)), "") << steps << ' ' << deviation << ' ' << seed;
        EXPECT_EQ(doubt(noisy(steps, deviation, seed, stays)), "") << steps << ' ' << deviation << ' ' << seed;
        EXPECT_EQ(doubt(noisy(steps, deviation, seed, creeps)), "") << steps << ' ' << deviation << ' ' << seed;
      }
  EXPECT_EQ(doubt({}), "");
  EXPECT_EQ(doubt({2.0, 5.0, 9.0}), "") << "three steps say nothing";
}

TEST(LossCurve, ALossFarAboveGuessingHasDivergedHoweverFewTheSteps) {
  const double guessing = std::log(double(vocabulary));
  for (const std::vector<double>& up :
       {std::vector{guessing, 12.0, 20.0, 75.0}, {guessing, 30.0, 20.0, 10.0, 1.5 * guessing}})
    EXPECT_THAT(doubt(up), HasSubstr("the run has diverged"));
  EXPECT_EQ(doubt({75.0, 40.0, 20.0, 1.5 * guessing}), "") << "it falls";
  EXPECT_EQ(doubt({guessing, guessing, guessing, 1.1 * guessing}), "") << "it may come back";
}

TEST(LossCurve, GradientsThatVanishedAreToldOf) {
  EXPECT_THAT(doubt_about_norms({3, 0, 0}, "optimizer.lr"), HasSubstr("was 0 in the last 2 logged steps"));
  EXPECT_EQ(doubt_about_norms({0, 0, 1, 0}, "optimizer.lr"), "");
  EXPECT_EQ(doubt_about_norms({}, "optimizer.lr"), "");
}

TEST(LossCurve, ReadsTheLossesOfARunsMetrics) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/metrics.jsonl";
  std::ofstream(path) << line(1, 3) << "\nno object\n"
                      << line(2, std::nan("")) << '\n'
                      << line(3, 2.5) << "\n{\"version\": 1, \"st";
  EXPECT_THAT(logged_curve(path, line(4, 2) + "\n").losses, ElementsAre(3, 2.5, 2));
  EXPECT_THAT(logged_curve(folder.path() + "/none.jsonl").losses, ElementsAre());
}

TEST(LossCurve, ReadsBothEndsOfALargeFile) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/metrics.jsonl";
  std::ofstream file(path);
  const std::string seventh = line(7, 5) + "\n";
  file << line(1, 1) << '\n';
  for (std::size_t bytes = 0; bytes < (9u << 20); bytes += seventh.size()) file << seventh;
  file << line(8, 2) << '\n';
  file.close();
  const std::vector<double> losses = logged_curve(path).losses;
  EXPECT_EQ(losses.front(), 1);
  EXPECT_EQ(losses.back(), 2);
  EXPECT_LT(losses.size() * seventh.size(), 9u << 20);
}

}  // namespace
}  // namespace zero
