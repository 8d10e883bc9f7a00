#pragma once
// RoundingBounds: how far apart rounding may take two runs of one configuration, tensor by tensor, measured by the run
// itself: the reference is run in two precisions, and what lies between them is the effect of the coarser one's
// rounding, with all that the model makes of it. Every layout that computes in that precision errs as much and no more.
#include <cstdint>
#include <span>
#include <string>

#include "zero/prove/run_record.h"
#include "zero/prove/turned_elements.h"

namespace zero {

/// The largest relative error of one rounding to "fp32", "bf16" or "fp16".
double unit_roundoff(const std::string& precision);

/// How far apart a tensor may be in two runs.
struct RoundingBound {
  double distance = 0;  // without turned elements
  double turned = 0;    // elements, at the most
  double way = 0;       // what one of them adds, on average

  /// The part that two sketches take of it; beyond it above 1.
  double share(const TensorSketch& a, const TensorSketch& b) const;
};

class RoundingBounds {
 public:
  /// Both runs are of the reference's layout. `tokens`: of a step.
  RoundingBounds(const RunRecord& first, const std::string& first_precision, const RunRecord& second,
                 const std::string& second_precision, std::int64_t tokens);

  /// Of the distance of two runs in `precision` after the same steps.
  RoundingBound tensor(const std::string& precision, std::int64_t step, const std::string& kind,
                       std::size_t number) const;
  double loss(const std::string& precision, std::int64_t step) const;
  double grad_norm(const std::string& precision, std::int64_t step) const;
  /// The one before all updates.
  std::int64_t first_step() const;

 private:
  bool is_coarse(const std::string& precision) const;
  const RunRecord& run_in(const std::string& precision) const;
  /// What part of the measured distance the precision explains.
  double share(const std::string& precision, bool before_updates) const;
  /// Of two runs in the precision as many elements turn as of the measured ones, times this.
  double turning(const std::string& precision) const;
  /// By what share of its scale a tensor may be off for elements that earlier steps turned.
  double after_turned(const std::string& precision, std::int64_t step, const std::string& kind) const;

  const RunRecord &first_, &second_;
  std::string first_precision_, second_precision_;
  double growth_;  // of the error of a sum
  TurnedElements turned_;
};

/// Whether residuals that rounding leaves at random lie to one side: their mean is beyond `errors` standard errors of
/// it, by their own scatter. Of fewer than eight nothing is said.
bool one_sided(std::span<const double> residuals, double errors = 6);

}  // namespace zero
