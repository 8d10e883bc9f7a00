#pragma once
// The results of a short training run, for tests in which two runs must agree bit for bit.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/sim/checkpoint_bench.h"

namespace zero::testing {

struct Outcome {
  RunResult result;
  States states;  // after the last step
};

inline Outcome outcome_of(const RunOptions& run) {
  Outcome outcome;
  outcome.result = run_training(run, [&](Engine& engine, int, int step) {
    if (step == run.steps) add_states(engine, outcome.states);
  });
  return outcome;
}

/// Compares bytes, so 0 and -0 differ and a NaN equals itself.
inline bool has_equal_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         std::memcmp(a.contiguous().const_data_ptr(), b.contiguous().const_data_ptr(), a.nbytes()) == 0;
}

inline void expect_equal_bits(const States& a, const States& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, states] : a) {
    ASSERT_EQ(states.size(), b.at(name).size()) << name;
    for (const auto& [state, value] : states)
      EXPECT_TRUE(has_equal_bits(value, b.at(name).at(state))) << name << ", " << state;
  }
}

/// Compares losses, norms, weights and states.
inline void expect_equal_bits(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.result.losses, b.result.losses);
  EXPECT_EQ(a.result.norms, b.result.norms);
  ASSERT_EQ(a.result.weights.size(), b.result.weights.size());
  for (const auto& [name, weight] : a.result.weights)
    EXPECT_TRUE(has_equal_bits(weight, b.result.weights.at(name))) << name;
  expect_equal_bits(a.states, b.states);
}

}  // namespace zero::testing
