#pragma once
// Comparison: the places where two runs diverge, and by how much. The order within a step is loss, gradients, norm,
// update, weights. Look at the first difference.
#include <optional>
#include <string>

#include "zero/prove/rounding.h"
#include "zero/prove/run_record.h"

namespace zero {

/// A place where a run differs from its reference.
struct Parting {
  std::int64_t step = 0;
  std::string phase;   // "start", "resume", "loss", "gradient", "norm", "update", "weights", "copies"
  std::string tensor;  // empty for figures
  std::string why;     // with numbers
  std::string describe() const;
};

/// The first bit difference, over the steps that both have.
std::optional<Parting> first_other_bit(const RunRecord& run, const RunRecord& other);

/// Checks one run: copies agree on all ranks, and the norm is that of its gradients.
std::optional<Parting> first_contradiction(const RunRecord& run);

/// Compares a resumed run's initial states with another run's states after the same step: all bits must be equal.
std::optional<Parting> wrong_start(const RunRecord& run, const RunRecord& began);

struct RoundingVerdict {
  std::optional<Parting> parting;  // the first difference
  double most = 0;                 // largest share of its bound that any value used, up to there
  std::string most_of;             // that value
};

/// Compares with a run of the same precision, within the bounds. Gradient residuals before the first update must not be
/// one-sided.
RoundingVerdict within_rounding(const RunRecord& run, const RunRecord& other, const RoundingBounds& bounds,
                                const std::string& precision);

}  // namespace zero
