#include "models/generate/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/error.h"

namespace zero {
namespace {

const std::vector<float> logits{1.0f, 3.0f, -2.0f, 2.0f, 3.0f};

/// How often each token comes in n draws, as a fraction.
std::map<int, double> frequencies(const SamplingOptions& options, int n = 40000) {
  Sampler sampler(options, 0);
  std::map<int, double> counts;
  for (int i = 0; i < n; ++i) counts[sampler.next(logits, {})] += 1.0 / n;
  return counts;
}

TEST(Sampler, TinyTemperaturesAreGreedy) {
  for (const double temperature : {0.0, 1e-300, 1e-39, 1e-7})
    EXPECT_EQ(frequencies({.temperature = temperature}), frequencies({.temperature = 0})) << temperature;
}

TEST(Sampler, GreedyTakesTheFirstOfTheLikeliest) { EXPECT_EQ(Sampler({}, 0).next(logits, {}), 1); }

TEST(Sampler, PenaltyCountsEveryTokenOnceAndTurnsForNegativeLogits) {
  const std::vector<std::int32_t> history{1, 1, 1, 4};
  EXPECT_EQ(Sampler({.repetition_penalty = 1.4}, 0).next(logits, history), 1);  // 3 / 1.4 = 2.14, still above 2
  EXPECT_EQ(Sampler({.repetition_penalty = 1.6}, 0).next(logits, history), 3);
  const std::vector<float> negative{-1.0f, -1.5f};
  const std::vector<std::int32_t> first{0};
  EXPECT_EQ(Sampler({.repetition_penalty = 2}, 0).next(negative, first), 1);
}

TEST(Sampler, DrawsFollowTheSoftmax) {
  for (const double temperature : {0.7, 1.0, 2.0}) {
    const auto seen = frequencies({.temperature = temperature});
    double total = 0;
    for (const float logit : logits) total += std::exp(logit / temperature);
    for (int id = 0; id < 5; ++id) {
      const double p = std::exp(logits[static_cast<std::size_t>(id)] / temperature) / total;
      EXPECT_NEAR(seen.contains(id) ? seen.at(id) : 0, p, 5 * std::sqrt(p / 40000)) << temperature << " " << id;
    }
  }
}

TEST(Sampler, TopKAndTopPKeepTheLikeliest) {
  const auto k = frequencies({.temperature = 1, .top_k = 3});
  EXPECT_EQ(k.size(), 3u);
  EXPECT_FALSE(k.contains(0));
  const auto all = frequencies({.temperature = 1, .top_k = 100});
  EXPECT_EQ(all.size(), 5u);
  // softmax: 0.40 for each of 1 and 4, 0.147 for 3
  EXPECT_EQ(frequencies({.temperature = 1, .top_p = 0.3}).size(), 1u);
  EXPECT_EQ(frequencies({.temperature = 1, .top_p = 0.5}).size(), 2u);
  EXPECT_EQ(frequencies({.temperature = 1, .top_p = 0.85}).size(), 3u);
  EXPECT_EQ(frequencies({.temperature = 1, .top_k = 2, .top_p = 0.99}).size(), 2u);
}

TEST(Sampler, SeedAndRowDecideTheDraws) {
  const auto sequence = [](std::uint64_t seed, std::int64_t row) {
    Sampler sampler({.temperature = 1, .seed = seed}, row);
    std::vector<std::int32_t> ids;
    for (int i = 0; i < 50; ++i) ids.push_back(sampler.next(logits, {}));
    return ids;
  };
  EXPECT_EQ(sequence(1, 0), sequence(1, 0));
  EXPECT_NE(sequence(1, 0), sequence(2, 0));
  EXPECT_NE(sequence(1, 0), sequence(1, 1));
}

TEST(Sampler, OptionsOutOfRangeAreRefused) {
  for (const SamplingOptions& wrong :
       {SamplingOptions{.temperature = -1}, SamplingOptions{.temperature = NAN}, SamplingOptions{.top_k = -1},
        SamplingOptions{.top_p = 0}, SamplingOptions{.top_p = 1.1}, SamplingOptions{.repetition_penalty = 0}})
    EXPECT_THROW(validate(wrong), InputError);
  try {
    validate(SamplingOptions{.top_p = 2});
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "top-p 2: must be above 0 and at most 1");
  }
  EXPECT_NO_THROW(validate(SamplingOptions{}));
}

}  // namespace
}  // namespace zero
