#pragma once
// RoundingBounds: how far rounding may separate two runs of one configuration, per tensor. The bounds are measured. The
// reference layout runs in two precisions. The distance between the two runs is the error of the coarser precision, as
// this model amplifies it. Every layout in that precision has errors of the same size.
#include <cstdint>
#include <span>
#include <string>

#include "zero/prove/run_record.h"
#include "zero/prove/sign_flips.h"

namespace zero {

/// The largest relative error of one rounding to "fp32", "bf16" or "fp16", or in products of "fp32 high" or "fp32
/// medium" (training.matmul_precision).
double unit_roundoff(const std::string& precision);

/// The allowed distance of one tensor between two runs.
struct RoundingBound {
  double distance = 0;  // without sign flips
  double flips = 0;     // maximal number of sign flips
  double way = 0;       // mean contribution of one sign flip

  /// Returns the share of the bound that the distance of two sketches uses; above 1 is outside the bound.
  double share(const TensorSketch& a, const TensorSketch& b) const;
};

class RoundingBounds {
 public:
  /// Both runs have the reference's layout. `tokens`: per step.
  RoundingBounds(const RunRecord& first, const std::string& first_precision, const RunRecord& second,
                 const std::string& second_precision, std::int64_t tokens);

  /// The bound for two runs in `precision` after the same steps.
  RoundingBound tensor(const std::string& precision, std::int64_t step, const std::string& kind,
                       std::size_t number) const;
  double loss(const std::string& precision, std::int64_t step) const;
  double grad_norm(const std::string& precision, std::int64_t step) const;
  /// Returns the step before all updates.
  std::int64_t first_step() const;

 private:
  bool is_coarse(const std::string& precision) const;
  const RunRecord& run_in(const std::string& precision) const;
  /// Returns the part of the measured distance that the precision explains.
  double share(const std::string& precision, bool before_updates) const;
  /// Returns the number of sign flips between two runs in the precision, relative to the measured number.
  double flip_rate(const std::string& precision) const;
  /// Returns the share of its scale by which a tensor may differ because earlier steps flipped signs.
  double after_flips(const std::string& precision, std::int64_t step, const std::string& kind) const;

  const RunRecord &first_, &second_;
  std::string first_precision_, second_precision_;
  double growth_;  // growth of the error of a sum
  SignFlips flips_;
};

/// Returns true if the residuals are biased to one side, which rounding never causes. Their mean must exceed `errors`
/// standard errors, estimated from their scatter. Returns false for fewer than eight residuals.
bool one_sided(std::span<const double> residuals, double errors = 6);

}  // namespace zero
