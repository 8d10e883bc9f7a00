#include "zero/prove/sign_flips.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/unit/prove/made_records.h"
#include "zero/prove/comparison.h"

namespace zero {
namespace {

using testing::random_values;
using testing::sketched;

constexpr double step_size = 1e-3;
constexpr std::size_t tensors = 40, elements = 128;

/// Two steps by the signs of gradients, from weights of 0. In the first step, the elements that `flips` names for a
/// tensor go the other way. All elements are off by `error` of the way.
RunRecord sign_steps(const std::vector<std::set<std::size_t>>& flips, double error = 0, double gradient_noise = 1e-2) {
  RunRecord run;
  for (std::int64_t step = 0; step <= 2; ++step) {
    KindRecord gradient{"gradient", {}}, master{"master", {}};
    for (std::size_t t = 0; t < tensors; ++t) {
      std::vector<double> of = random_values(t, elements), weights(elements);
      const std::vector<double> noise = random_values(mix_seed(t, std::uint64_t(1e6 * gradient_noise)), elements);
      for (std::size_t i = 0; i < elements; ++i) {
        const double sign = of[i] < 0 ? -1 : 1;
        weights[i] = step_size * sign *
                     (double(step) - (step > 0 && t < flips.size() && flips[t].contains(i) ? 2 : 0)) *
                     (1 + error * noise[i]);
        of[i] += gradient_noise * noise[i];
      }
      gradient.tensors.push_back({"tensor" + std::to_string(t), sketched(of)});
      master.tensors.push_back({"tensor" + std::to_string(t), sketched(weights)});
    }
    StepRecord record;
    if (step > 0) record.kinds.push_back(gradient);
    record.kinds.push_back(master);
    record.has_figures = true;
    record.figures = {5.0, 0, 1, step};
    run.steps[step] = record;
  }
  for (auto& [step, record] : run.steps) {
    double squares = 0;
    if (const KindRecord* gradient = record.find("gradient"))
      for (const TensorRecord& tensor : gradient->tensors) squares += tensor.sketch.squares;
    record.figures.grad_norm = std::sqrt(squares);
  }
  return run;
}

/// An element in every other tensor.
std::vector<std::set<std::size_t>> seldom() {
  std::vector<std::set<std::size_t>> flips(tensors);
  for (std::size_t t = 1; t < tensors; t += 2) flips[t] = {t};
  return flips;
}

/// The distance between two runs.
struct Signs {
  RunRecord bf16 = sign_steps({}), fp32 = sign_steps(seldom(), 0, 1e-7);
  RoundingBounds bounds{bf16, "bf16", fp32, "fp32", 64};

  std::optional<Parting> parting(const RunRecord& run) const {
    return within_rounding(run, bf16, bounds, "bf16").parting;
  }
  std::optional<Parting> in_fp32(const RunRecord& run) const {
    return within_rounding(run, fp32, bounds, "fp32").parting;
  }
};

TEST(SignFlips, AreCounted) {
  const Signs signs;
  const SignFlips flips(signs.bf16, signs.fp32);
  EXPECT_EQ(flips.count(0), 0);
  EXPECT_NEAR(flips.count(1), tensors / 2, 1);
  EXPECT_NEAR(flips.count(2), tensors / 2, 1);  // a part of the way by then, and as many as they were
  EXPECT_NEAR(flips.moved(1, "master", 3), step_size, 1e-4);
  EXPECT_NEAR(flips.moved(2, "master", 3), 2 * step_size, 2e-4);
}

TEST(SignFlips, AFewMoreThanTheMeasuredOnesAreRounding) {
  const Signs signs;
  for (std::size_t count = 1; count <= 4; ++count) {
    std::set<std::size_t> some;
    for (std::size_t i = 0; i < count; ++i) some.insert(7 * i);
    EXPECT_FALSE(signs.parting(sign_steps({some}))) << count;
  }
  EXPECT_FALSE(
      signs.in_fp32(sign_steps({{}, {1}, {5}, {3}}, 0, 1e-7)));  // besides those of the other run, one of tensor 2
}

TEST(SignFlips, ManyAreNot) {
  const Signs signs;
  std::set<std::size_t> many;
  for (std::size_t i = 0; i < 40; ++i) many.insert(3 * i);
  const std::optional<Parting> parting = signs.parting(sign_steps({{}, many}));
  ASSERT_TRUE(parting);
  EXPECT_EQ(parting->phase, "update");
  EXPECT_EQ(parting->tensor, "master of tensor1");
  EXPECT_NE(parting->why.find("elements that go the other way"), std::string::npos) << parting->why;
}

// The distance equals that of three sign flips.
TEST(SignFlips, AnErrorInAllElementsIsNotTakenForThem) {
  const Signs signs;
  const std::optional<Parting> parting = signs.parting(sign_steps({}, 0.5));
  ASSERT_TRUE(parting);
  EXPECT_EQ(parting->phase, "update");
  EXPECT_EQ(parting->step, 1);
}

// The measured runs have none by chance; by the gradients' errors a few were to be expected.
TEST(SignFlips, AreRoundingWhereNoneWasMeasured) {
  const RunRecord bf16 = sign_steps({}), fp32 = sign_steps({}, 0, 1e-7);
  const RoundingBounds bounds{bf16, "bf16", fp32, "fp32", 64};
  const auto parting = [&](const RunRecord& run) { return within_rounding(run, bf16, bounds, "bf16").parting; };
  EXPECT_FALSE(parting(sign_steps({{3}, {5}})));
  EXPECT_TRUE(
      parting(sign_steps({{3, 7, 11, 20, 22, 34, 41, 47, 51, 60, 64, 70, 77, 81, 90, 96, 101, 107, 111, 120}})));
  EXPECT_TRUE(parting(sign_steps({}, 0.1)));
}

// A third of a tensor follows signs of pure rounding, also in fp32, where a tensor with the usual gradient errors does
// not flip.
TEST(SignFlips, WithoutAGradientTurnInAnyPrecision) {
  const auto third = [](std::size_t from) {
    std::set<std::size_t> some;
    for (std::size_t i = from; i < elements / 3; i += 2) some.insert(i);
    return some;
  };
  const RunRecord bf16 = sign_steps({}), fp32 = sign_steps({{}, third(0)}, 0, 1e-7);
  const RoundingBounds bounds{bf16, "bf16", fp32, "fp32", 64};
  const auto in_fp32 = [&](const RunRecord& run) { return within_rounding(run, fp32, bounds, "fp32").parting; };
  EXPECT_FALSE(in_fp32(sign_steps({{}, third(1)}, 0, 1e-7)));
  EXPECT_TRUE(in_fp32(sign_steps({third(1), third(0)}, 0, 1e-7)));
}

// Steps that follow the gradient err as much as it does, in all elements.
TEST(SignFlips, AreNotCountedWhereUpdatesFollowTheGradient) {
  const RunRecord bf16 = sign_steps({}, 1e-2), fp32 = sign_steps({}, 0, 1e-7);
  const SignFlips flips(bf16, fp32);
  EXPECT_EQ(flips.count(2), 0);
  EXPECT_EQ(flips.most(2, 1.0), 0);
}

TEST(PoissonMost, IsExceededOnceInAMillion) {
  for (const double mean : {1e-7, 1e-3, 0.1, 1.0, 17.5, 300.0}) {
    const double most = poisson_most(mean);
    double within = 0, before = 0;  // probabilities of at most so many, and of one less
    for (int k = 0; k <= int(most); ++k) {
      before = within;
      within += std::exp(k * std::log(mean) - mean - std::lgamma(k + 1.0));
    }
    EXPECT_LE(1 - within, 1.01e-6) << mean;
    EXPECT_TRUE(most == 0 || 1 - before > 0.99e-6) << mean;
  }
  EXPECT_EQ(poisson_most(0), 0);
  EXPECT_NEAR(poisson_most(501), poisson_most(500), 8);
  EXPECT_GT(poisson_most(1e9), 1e9);
}

TEST(DistanceWithout, LeavesOutWhatDiffersMost) {
  const std::vector<double> values = random_values(1, 1000), noise = random_values(2, 1000);
  std::vector<double> other = values;
  for (std::size_t i = 0; i < 3; ++i) other[100 * i] += 5;
  EXPECT_NEAR(distance(sketched(values), sketched(other)), 5 * std::sqrt(3.0), 4);
  EXPECT_NEAR(distance_without(sketched(values), sketched(other), 3), 0, 1e-9);
  for (std::size_t i = 0; i < values.size(); ++i) other[i] = values[i] + noise[i];
  const double all = distance(sketched(values), sketched(other));
  EXPECT_NEAR(distance_without(sketched(values), sketched(other), 3) / all, 0.95, 0.05);
  EXPECT_EQ(distance_without(sketched(values), sketched(values), 3), 0);
}

}  // namespace
}  // namespace zero
