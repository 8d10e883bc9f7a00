#include "zero/prove/sign_flips.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace zero {
namespace {

// The relative error of an update that follows the gradient is within this factor of the gradient's.
constexpr double follows = 3;
// More flips than this factor times the prediction have another cause than gradient errors.
constexpr double beyond_law = 4;

const TensorSketch& sketch(const KindRecord& kind, std::size_t tensor) { return kind.tensors.at(tensor).sketch; }

/// 0 for an overflow.
double finite(double value) { return std::isfinite(value) ? value : 0; }

double off(const KindRecord& a, const KindRecord& b, std::size_t tensor) {
  return finite(distance(sketch(a, tensor), sketch(b, tensor)));
}

/// Updates the largest relative error of each tensor's gradient, over this step and those before.
void raise(std::vector<double>& shares, const StepRecord& first, const StepRecord& second) {
  const KindRecord *a = first.find("gradient"), *b = second.find("gradient");
  if (!a || !b) return;
  shares.resize(a->tensors.size());
  for (std::size_t t = 0; t < shares.size(); ++t)
    if (const double norm = sketch(*a, t).norm(); norm > 0) shares[t] = std::max(shares[t], off(*a, *b, t) / norm);
}

}  // namespace

double poisson_most(double mean) {
  constexpr double probability = 1e-6;
  if (!(mean > 0)) return 0;
  if (mean > 500) return mean + 5 * std::sqrt(mean);  // nearly normal
  double term = std::exp(-mean), beyond = 1 - term, number = 0;
  for (; beyond > probability; beyond -= term) term *= mean / ++number;
  return number;
}

SignFlips::SignFlips(const RunRecord& first, const RunRecord& second) : first_(first) {
  std::vector<double> of_gradients;
  const Step* before = nullptr;
  for (const auto& [step, record] : first.steps) {
    const StepRecord& other = second.steps.at(step);
    raise(of_gradients, record, other);
    measure_ways(step, before);
    measure_shares(step, other);
    count_flips(step, other, of_gradients);
    if (before) carry(*before, steps_.at(step));
    before = &steps_.at(step);
  }
}

void SignFlips::measure_ways(std::int64_t step, const Step* before) {
  const StepRecord* former = before ? &std::prev(first_.steps.find(step))->second : nullptr;
  for (const KindRecord& kind : first_.steps.at(step).kinds) {
    if (!moves(kind.kind)) continue;
    std::vector<double>& moved = steps_[step].moved[kind.kind];
    moved.resize(kind.tensors.size());
    const KindRecord* from = former ? former->find(kind.kind) : nullptr;
    for (std::size_t t = 0; from && t < moved.size(); ++t)
      moved[t] = before->moved.at(kind.kind).at(t) +
                 off(kind, *from, t) / std::sqrt(std::max(1.0, double(sketch(kind, t).numel)));
  }
}

void SignFlips::measure_shares(std::int64_t step, const StepRecord& second) {
  for (const KindRecord& kind : first_.steps.at(step).kinds) {
    const KindRecord* other = second.find(kind.kind);
    double squares = 0, count = 0;
    for (std::size_t t = 0; other && t < kind.tensors.size(); ++t) {
      const double of = scale(step, kind.kind, t);
      if (of == 0) continue;
      squares += std::pow(off(kind, *other, t) / of, 2);
      ++count;
    }
    steps_[step].mean_shares[kind.kind] = count > 0 ? std::sqrt(squares / count) : 0;
  }
}

// Earlier flips persist even if they no longer show.
void SignFlips::carry(const Step& before, Step& step) {
  step.count = std::max(step.count, before.count);
  step.expected += before.expected;
  step.elements = std::max(step.elements, before.elements);
  step.tensors = std::max(step.tensors, before.tensors);
  for (std::size_t t = 0; t < std::min(step.aimless.size(), before.aimless.size()); ++t)
    step.aimless[t] = std::max(step.aimless[t], before.aimless[t]);
}

// Uses the master weights, if any: 16-bit copies are rounded in addition. Two numbers with a normal relative error e
// have different signs with probability e / pi.
void SignFlips::count_flips(std::int64_t step, const StepRecord& second, const std::vector<double>& shares) {
  const KindRecord* kind = first_.steps.at(step).find("master");
  if (!kind) kind = first_.steps.at(step).find("weights");
  const KindRecord* other = kind ? second.find(kind->kind) : nullptr;
  Step& found = steps_[step];
  for (std::size_t t = 0; other && t < kind->tensors.size() && t < shares.size(); ++t) {
    found.aimless.resize(kind->tensors.size());
    const double way = scale(step, kind->kind, t), numel = double(sketch(*kind, t).numel);
    if (way == 0) continue;
    ++found.tensors;
    found.elements += numel;
    const double share = off(*kind, *other, t) / way, followed = follows * shares[t];
    if (share > followed) found.count += numel * (share * share - followed * followed) / 4;
    const double by_law = numel * shares[t] / std::numbers::pi;
    if (share > followed || share < shares[t] / follows) found.expected += by_law;
    if (const double flips = numel * share * share / 4; flips > beyond_law * (by_law + 1))
      found.aimless[t] = flips + 4 * std::sqrt(flips);
  }
}

// The count is a single draw, and the expectation comes from a simplified law.
double SignFlips::likely(std::int64_t step) const {
  const Step& of = steps_.at(step);
  return std::max(of.count + 4 * std::sqrt(of.count), 2 * of.expected);
}

double SignFlips::most(std::int64_t step, double rate) const { return poisson_most(rate * likely(step)); }

double SignFlips::most(std::int64_t step, double rate, const std::string& kind, std::size_t tensor) const {
  const Step& of = steps_.at(step);
  if (of.elements == 0) return 0;
  const double elements = double(sketch(*first_.steps.at(step).find(kind), tensor).numel);
  return std::max(poisson_most(rate * likely(step) * elements / of.elements),
                  tensor < of.aimless.size() ? std::ceil(of.aimless[tensor]) : 0);
}

double SignFlips::most_of_one(std::int64_t step, double rate) const {
  const double all = steps_.at(step).tensors;
  return all > 0 ? poisson_most(rate * likely(step) / all) : 0;
}

double SignFlips::effect(std::int64_t step, const std::string& kind) const {
  const auto now = steps_.find(step);
  const Step& before = std::prev(now)->second;
  if (before.tensors == 0) return 0;
  if (before.count < 1) return 2 * std::sqrt(before.tensors / before.elements);  // relative to a tensor of mean size
  return now->second.mean_shares.at(kind) * std::sqrt(before.tensors / before.count);
}

double SignFlips::moved(std::int64_t step, const std::string& kind, std::size_t tensor) const {
  return steps_.at(step).moved.at(kind).at(tensor);
}

double SignFlips::scale(std::int64_t step, const std::string& kind, std::size_t tensor) const {
  const TensorSketch& of = sketch(*first_.steps.at(step).find(kind), tensor);
  return moves(kind) ? moved(step, kind, tensor) * std::sqrt(double(of.numel)) : finite(of.norm());
}

}  // namespace zero
