#pragma once
// Comparison: where and by how much two runs part. The order of a step is loss, gradients, norm, update, weights: the
// first of these that differs is where to look.
#include <optional>
#include <string>

#include "zero/prove/rounding.h"
#include "zero/prove/run_record.h"

namespace zero {

/// Where a run is not what it must be.
struct Parting {
  std::int64_t step = 0;
  std::string phase;   // "start", "resume", "loss", "gradient", "norm", "update", "weights", "copies"
  std::string tensor;  // empty for figures
  std::string why;     // with the numbers
  std::string describe() const;
};

/// The first thing, from the steps that both have, in which the bits differ.
std::optional<Parting> first_other_bit(const RunRecord& run, const RunRecord& other);

/// What a run must be in itself: its ranks' copies agree, and its norm is that of its gradients.
std::optional<Parting> first_contradiction(const RunRecord& run);

/// The states that a run goes on from, against those that another one had after the same step: equal to the bit.
std::optional<Parting> wrong_start(const RunRecord& run, const RunRecord& began);

struct RoundingVerdict {
  std::optional<Parting> parting;  // the first one
  double most = 0;                 // of the largest share of its bound that anything took, up to there
  std::string most_of;             // what that was
};

/// Against a run in the same precision, within the bounds; residuals of the gradients before all updates must have no side.
RoundingVerdict within_rounding(const RunRecord& run, const RunRecord& other, const RoundingBounds& bounds,
                                const std::string& precision);

}  // namespace zero
