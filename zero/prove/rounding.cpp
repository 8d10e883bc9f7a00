#include "zero/prove/rounding.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/error.h"

namespace zero {
namespace {

// One for the error of each run, one for the scatter of both and of the measurement.
constexpr double slack = 3;
// For effects of sign flips, whose number is already a maximum. Each flip has its own size.
constexpr double slack_of_flips = 2;
// Beyond this many, use the measured distance: too few buckets of the sketch would be left.
constexpr double most_left_out = 32;

}  // namespace

double unit_roundoff(const std::string& precision) {
  static const std::map<std::string, int> bits{
      {"fp32", 24}, {"fp32 high", 16}, {"fp16", 11}, {"fp32 medium", 8}, {"bf16", 8}};
  return std::ldexp(1.0, -bits.at(precision));
}

RoundingBounds::RoundingBounds(const RunRecord& first, const std::string& first_precision, const RunRecord& second,
                               const std::string& second_precision, std::int64_t tokens)
    : first_(first),
      second_(second),
      first_precision_(first_precision),
      second_precision_(second_precision),
      growth_(std::sqrt(double(tokens))),
      flips_(first, second) {
  ZERO_CHECK(first_precision != second_precision, "rounding cannot be measured in one precision");
}

bool RoundingBounds::is_coarse(const std::string& precision) const {
  return unit_roundoff(precision) == std::max(unit_roundoff(first_precision_), unit_roundoff(second_precision_));
}

const RunRecord& RoundingBounds::run_in(const std::string& precision) const {
  return precision == first_precision_ ? first_ : second_;
}

std::int64_t RoundingBounds::first_step() const { return first_.steps.begin()->first + 1; }

// Before the first update, errors are proportional to the roundoff. Sums over tokens are the exception. Both precisions
// use fp32 for these sums, so roundings of 16-bit terms average out and those of the sum do not. After the first
// update, a sign or a quotient of small gradients amplifies errors (Adam's first step follows the gradient's sign). The
// number of sign flips is then proportional to the roundoff, and their norm to its square root.
double RoundingBounds::share(const std::string& precision, bool before_updates) const {
  if (is_coarse(precision)) return 1;
  const double ratio =
      unit_roundoff(precision) / std::max(unit_roundoff(first_precision_), unit_roundoff(second_precision_));
  return before_updates ? growth_ * ratio : std::sqrt(growth_ * ratio);
}

// Both runs have errors of the coarse precision; of the measured runs, only one had.
double RoundingBounds::flip_rate(const std::string& precision) const {
  const double part = share(precision, /*before_updates=*/false);
  return std::sqrt(2.0) * part * part;
}

double RoundingBounds::after_flips(const std::string& precision, std::int64_t step, const std::string& kind) const {
  return slack_of_flips * std::sqrt(flips_.most_of_one(step - 1, flip_rate(precision))) * flips_.effect(step, kind);
}

double RoundingBound::share(const TensorSketch& a, const TensorSketch& b) const {
  const double off = zero::distance(a, b);
  if (off == 0) return 0;
  if (flips == 0) return off / distance;
  if (flips > most_left_out) return off / std::max(distance, way * std::sqrt(flips));
  const double others = distance_without(a, b, std::size_t(flips));
  return std::min(off / distance, std::max(others / distance, off / (distance + 2 * way * std::sqrt(flips))));
}

RoundingBound RoundingBounds::tensor(const std::string& precision, std::int64_t step, const std::string& kind,
                                     std::size_t number) const {
  const auto sketch = [&](const RunRecord& run) -> const TensorSketch& {
    return run.steps.at(step).find(kind)->tensors.at(number).sketch;
  };
  const bool before_updates = step == first_step() && kind == "gradient";
  const double own = unit_roundoff(precision) * (is_coarse(precision) ? 1 : growth_);
  const double measured = distance(sketch(first_), sketch(second_));
  RoundingBound bound;
  bound.distance = slack * (share(precision, before_updates) * measured + own * sketch(run_in(precision)).norm());
  if (step > first_step())
    bound.distance = std::max(bound.distance, after_flips(precision, step, kind) * flips_.scale(step, kind, number));
  if (SignFlips::moves(kind)) {
    bound.flips = flips_.most(step, flip_rate(precision), kind, number);
    bound.way = 2 * flips_.moved(step, kind, number);
  }
  return bound;
}

// A single loss may match by chance, so use the error over all steps.
double RoundingBounds::loss(const std::string& precision, std::int64_t step) const {
  double squares = 0;
  std::int64_t count = 0;
  for (const auto& [s, record] : first_.steps) {
    if (!record.has_figures || std::isnan(record.figures.loss)) continue;
    const double off = record.figures.loss - second_.steps.at(s).figures.loss;
    squares += off * off;
    ++count;
  }
  const double measured = std::sqrt(squares / double(std::max<std::int64_t>(count, 1)));
  const double loss = std::abs(run_in(precision).steps.at(step).figures.loss);
  const double once = slack * (share(precision, step == first_step()) * measured +
                               unit_roundoff(precision) * loss / (is_coarse(precision) ? 32 : 1));
  if (step == first_step()) return once;
  const double flips = flips_.most(step - 1, flip_rate(precision)) / std::max(1.0, flips_.count(step - 1));
  return std::max(once, slack_of_flips * std::sqrt(flips) * measured);
}

// Norms differ by no more than the gradients do.
double RoundingBounds::grad_norm(const std::string& precision, std::int64_t step) const {
  double squares = 0;
  const KindRecord* gradient = first_.steps.at(step).find("gradient");
  for (std::size_t t = 0; gradient && t < gradient->tensors.size(); ++t) {
    const double bound = tensor(precision, step, "gradient", t).distance;
    squares += bound * bound;
  }
  return std::sqrt(squares);
}

bool one_sided(std::span<const double> residuals, double errors) {
  if (residuals.size() < 8) return false;
  const auto n = double(residuals.size());
  const double mean = std::accumulate(residuals.begin(), residuals.end(), 0.0) / n;
  double squares = 0;
  for (const double r : residuals) squares += (r - mean) * (r - mean);
  return std::abs(mean) > errors * std::sqrt(squares / (n - 1) / n);
}

}  // namespace zero
