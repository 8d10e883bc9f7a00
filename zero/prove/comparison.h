#pragma once
// Comparison: the places where two runs diverge, and by how much. The order within a step is loss, gradients, norm,
// update, weights, so the first difference is the one to look at.
#include <optional>
#include <string>

#include "zero/prove/rounding.h"
#include "zero/prove/run_record.h"

namespace zero {

/// A place where a run differs from its reference.
struct Parting {
  std::int64_t step = 0;
  std::string phase;   // "start", "resume", "loss", "gradient", "norm", "update", "weights", "copies"
  std::string tensor;  // empty for metrics
  std::string why;     // explanation with numbers
  std::string describe() const;
};

/// Returns the first bit difference in the steps that both runs have.
std::optional<Parting> first_other_bit(const RunRecord& run, const RunRecord& other);

/// Checks that in one run copies agree on all ranks, and that the norm matches the gradients.
std::optional<Parting> first_contradiction(const RunRecord& run);

/// Compares a resumed run's initial states with another run's states after the same step: all bits must be equal.
std::optional<Parting> wrong_start(const RunRecord& run, const RunRecord& began);

struct RoundingVerdict {
  std::optional<Parting> parting;  // the first difference
  double most = 0;                 // largest share of its bound that any value used, up to that difference
  std::string most_of;             // name of that value
};

/// Checks that a run agrees with one of the same precision within the bounds. Gradient residuals before the first
/// update must not be one-sided.
RoundingVerdict within_rounding(const RunRecord& run, const RunRecord& other, const RoundingBounds& bounds,
                                const std::string& precision);

}  // namespace zero
