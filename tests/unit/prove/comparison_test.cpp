#include "zero/prove/comparison.h"

#include <gtest/gtest.h>

#include "tests/unit/prove/made_records.h"

namespace zero {
namespace {

using testing::Errors;
using testing::made_run;

constexpr double bf16_noise = 1e-2;

/// The distance between a run in bf16 and one in fp32.
struct Measured {
  RunRecord bf16 = made_run({.noise = bf16_noise, .seed = 1});
  RunRecord fp32 = made_run({.noise = 1e-7, .seed = 2});
  RoundingBounds bounds{bf16, "bf16", fp32, "fp32", 64};

  RoundingVerdict of_bf16(const RunRecord& run) const { return within_rounding(run, bf16, bounds, "bf16"); }
  RoundingVerdict of_fp32(const RunRecord& run) const { return within_rounding(run, fp32, bounds, "fp32"); }
};

std::string phase_of(const RoundingVerdict& verdict) { return verdict.parting ? verdict.parting->phase : "none"; }

TEST(Rounding, ARunThatErrsAsTheReferenceDoesAgrees) {
  const Measured measured;
  for (std::uint64_t seed = 10; seed < 40; ++seed) {
    const RoundingVerdict verdict = measured.of_bf16(made_run({.noise = bf16_noise, .seed = seed}));
    EXPECT_FALSE(verdict.parting) << verdict.parting->describe();
    EXPECT_GT(verdict.most, 0.3);
    EXPECT_LT(verdict.most, 1);
    EXPECT_FALSE(measured.of_fp32(made_run({.noise = 1e-7, .seed = seed})).parting);
  }
}

TEST(Rounding, ARunThatErrsMoreDoesNot) {
  const Measured measured;
  EXPECT_EQ(phase_of(measured.of_bf16(made_run({.noise = 4 * bf16_noise, .seed = 10}))), "gradient");
  EXPECT_EQ(phase_of(measured.of_fp32(made_run({.noise = 1e-5, .seed = 10}))), "gradient");
}

TEST(Rounding, OneElementBeyondItIsFoundAndNamed) {
  const Measured measured;
  RunRecord run = made_run({.noise = bf16_noise, .seed = 10});
  const double one[] = {0.9};
  run.steps.at(1).kinds[0].tensors[7].sketch.add(3, one);
  const RoundingVerdict verdict = measured.of_bf16(run);
  ASSERT_TRUE(verdict.parting);
  EXPECT_EQ(verdict.parting->step, 1);
  EXPECT_EQ(verdict.parting->phase, "gradient");
  EXPECT_EQ(verdict.parting->tensor, "tensor7");
}

// All gradients a little too long: far within the bound of each, and yet no rounding.
TEST(Rounding, ADriftToOneSideIsFound) {
  const Measured measured;
  const RoundingVerdict verdict =
      measured.of_bf16(made_run({.noise = bf16_noise, .seed = 10, .gradient_scale = 1.005}));
  ASSERT_TRUE(verdict.parting);
  EXPECT_NE(verdict.parting->why.find("one side"), std::string::npos) << verdict.parting->why;
  EXPECT_TRUE(measured.of_bf16(made_run({.noise = bf16_noise, .seed = 10, .gradient_scale = 0.995})).parting);
}

// After updates all gradients may have a common error, of the weights.
TEST(Rounding, ADriftAfterUpdatesIsNot) {
  const Measured measured;
  RunRecord resumed = made_run({.noise = bf16_noise, .seed = 10, .gradient_scale = 1.005});
  resumed.steps.erase(0), resumed.steps.erase(1);
  EXPECT_FALSE(measured.of_bf16(resumed).parting);
}

TEST(OneSided, DistinguishesBiasFromScatter) {
  int biased = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::vector<double> residuals = testing::random_values(seed, 60);
    EXPECT_FALSE(one_sided(residuals)) << seed;
    for (double& r : residuals) r += 0.7;
    biased += one_sided(residuals);
  }
  EXPECT_EQ(biased, 200);
  EXPECT_TRUE(one_sided(std::vector<double>(8, 0.1)));   // without any scatter
  EXPECT_FALSE(one_sided(std::vector<double>(7, 0.1)));  // too few
  EXPECT_FALSE(one_sided(std::vector<double>(100, 0.0)));
}

TEST(Comparison, TheFirstThingOfAStepIsNamed) {
  const Measured measured;
  const auto with = [&](const auto& change) {
    RunRecord run = measured.bf16;
    change(run.steps.at(2));
    return run;
  };
  const auto first = [&](const auto& change) {
    const RunRecord run = with(change);
    EXPECT_EQ(phase_of(measured.of_bf16(run)), first_other_bit(run, measured.bf16)->phase);
    EXPECT_EQ(first_other_bit(run, measured.bf16)->step, 2);
    return phase_of(measured.of_bf16(run));
  };
  const auto other_weights = [](StepRecord& step) {
    step.kinds[2] = testing::made_kind("other", 9, {}), step.kinds[2].kind = "weights";
  };
  const auto other_master = [&](StepRecord& step) {
    other_weights(step), step.kinds[1].tensors = step.kinds[2].tensors;
  };
  const auto other_scale = [&](StepRecord& step) { other_master(step), step.figures.loss_scale = 2; };
  const auto other_norm = [&](StepRecord& step) { other_scale(step), step.figures.grad_norm *= 2; };
  const auto other_gradient = [&](StepRecord& step) {
    other_norm(step), step.kinds[0].tensors = step.kinds[2].tensors;
  };
  const auto other_loss = [&](StepRecord& step) { other_gradient(step), step.figures.loss += 1; };
  EXPECT_EQ(first(other_weights), "weights");
  EXPECT_EQ(first(other_master), "update");
  EXPECT_EQ(first(other_scale), "update");
  EXPECT_EQ(first(other_norm), "norm");
  EXPECT_EQ(first(other_gradient), "gradient");
  EXPECT_EQ(first(other_loss), "loss");
  EXPECT_FALSE(first_other_bit(measured.bf16, measured.bf16));
  EXPECT_FALSE(measured.of_bf16(measured.bf16).parting);
}

TEST(Comparison, NanIsADifference) {
  const Measured measured;
  RunRecord run = measured.bf16;
  run.steps.at(3).kinds[1].tensors[4].sketch = testing::sketched(std::vector<double>(512, NAN));
  ASSERT_TRUE(measured.of_bf16(run).parting);
  EXPECT_EQ(measured.of_bf16(run).parting->tensor, "master of tensor4");
}

// A step of fp16 that overflowed is skipped by both.
TEST(Comparison, AnOverflowInBothAgrees) {
  const Measured measured;
  const auto overflowed = [](RunRecord run, double value) {
    run.steps.at(2).kinds[0].tensors[4].sketch = testing::sketched(std::vector<double>(512, value));
    run.steps.at(2).figures.grad_norm = NAN;
    return run;
  };
  const RunRecord reference = overflowed(measured.bf16, NAN);
  EXPECT_FALSE(within_rounding(overflowed(measured.bf16, INFINITY), reference, measured.bounds, "bf16").parting);
  EXPECT_FALSE(first_other_bit(overflowed(measured.bf16, -NAN), reference));
  EXPECT_TRUE(within_rounding(measured.bf16, reference, measured.bounds, "bf16").parting);
}

// A step that training.on_nonfinite skips, for its loss.
TEST(Comparison, ALossThatIsNoNumberInBothAgrees) {
  Measured measured;
  const auto without_loss = [](RunRecord run) {
    run.steps.at(2).figures.loss = NAN;
    return run;
  };
  measured.bf16 = without_loss(measured.bf16);
  measured.fp32 = without_loss(measured.fp32);
  const RunRecord run = without_loss(made_run({.noise = bf16_noise, .seed = 10}));
  EXPECT_FALSE(measured.of_bf16(run).parting) << measured.of_bf16(run).parting->describe();
  EXPECT_FALSE(first_other_bit(measured.bf16, measured.bf16));
}

TEST(Comparison, ARunContradictsItself) {
  RunRecord run = made_run({});
  EXPECT_FALSE(first_contradiction(run));
  run.steps.at(2).kinds[2].tensors[3].other_rank = 1;
  ASSERT_TRUE(first_contradiction(run));
  EXPECT_EQ(first_contradiction(run)->phase, "copies");
  run = made_run({});
  run.steps.at(1).figures.grad_norm *= 1.00001;
  ASSERT_TRUE(first_contradiction(run));
  EXPECT_EQ(first_contradiction(run)->phase, "norm");
}

TEST(Comparison, AResumedRunBeginsWithWhatWasSaved) {
  const RunRecord whole = made_run({.noise = 0.1});
  const auto resumed = [&] {
    RunRecord run = whole;
    run.steps.erase(run.steps.begin(), run.steps.find(2));
    std::erase_if(run.steps.at(2).kinds, [](const KindRecord& kind) { return kind.kind == "gradient"; });
    run.steps.at(2).figures.loss = NAN;
    return run;
  };
  RunRecord run = resumed();
  EXPECT_FALSE(wrong_start(run, whole));
  run.steps.at(2).figures.updates = 0;
  EXPECT_EQ(wrong_start(run, whole)->phase, "resume");
  run = resumed();
  run.steps.at(2).figures.loss_scale = 65536;
  EXPECT_EQ(wrong_start(run, whole)->phase, "resume");
  run = resumed();
  run.steps.at(2).kinds[0].tensors[5].sketch = {};
  ASSERT_TRUE(wrong_start(run, whole));
  EXPECT_EQ(wrong_start(run, whole)->tensor, "master of tensor5");
}

}  // namespace
}  // namespace zero
