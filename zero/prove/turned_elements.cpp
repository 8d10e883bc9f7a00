#include "zero/prove/turned_elements.h"

#include <algorithm>
#include <cmath>

namespace zero {
namespace {

// Of the gradients' errors; beyond it an update does not follow them.
constexpr double follows = 3;

const TensorSketch& sketch(const KindRecord& kind, std::size_t tensor) { return kind.tensors.at(tensor).sketch; }

/// 0 for what overflowed.
double finite(double value) { return std::isfinite(value) ? value : 0; }

double off(const KindRecord& a, const KindRecord& b, std::size_t tensor) {
  return finite(distance(sketch(a, tensor), sketch(b, tensor)));
}

/// Of each tensor's gradient the largest share, of this step or one before, by which the two runs differ.
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
  if (mean > 500) return mean + 5 * std::sqrt(mean);  // as good as normal
  double term = std::exp(-mean), beyond = 1 - term, number = 0;
  for (; beyond > probability; beyond -= term) term *= mean / ++number;
  return number;
}

TurnedElements::TurnedElements(const RunRecord& first, const RunRecord& second) : first_(first) {
  std::vector<double> of_gradients;
  const Step* before = nullptr;
  for (const auto& [step, record] : first.steps) {
    const StepRecord& other = second.steps.at(step);
    raise(of_gradients, record, other);
    measure_ways(step, before);
    measure_shares(step, other);
    count_turned(step, other, of_gradients);
    // They are still turned where they no longer show.
    if (before && before->count > steps_.at(step).count) {
      steps_.at(step).count = before->count;
      steps_.at(step).elements = before->elements;
    }
    before = &steps_.at(step);
  }
}

void TurnedElements::measure_ways(std::int64_t step, const Step* before) {
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

void TurnedElements::measure_shares(std::int64_t step, const StepRecord& second) {
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

// Of the optimizer's copies, where it has any: those of 16 bits are rounded besides.
void TurnedElements::count_turned(std::int64_t step, const StepRecord& second, const std::vector<double>& shares) {
  const KindRecord* kind = first_.steps.at(step).find("master");
  if (!kind) kind = first_.steps.at(step).find("weights");
  const KindRecord* other = kind ? second.find(kind->kind) : nullptr;
  Step& found = steps_[step];
  for (std::size_t t = 0; other && t < kind->tensors.size() && t < shares.size(); ++t) {
    const double way = moved(step, kind->kind, t);
    if (way == 0) continue;
    const double followed = follows * shares[t] * scale(step, kind->kind, t);
    const double excess = std::pow(off(*kind, *other, t), 2) - followed * followed;
    found.count += std::max(0.0, excess) / std::pow(2 * way, 2);
    found.elements += double(sketch(*kind, t).numel);
  }
}

// The count itself is one draw.
double TurnedElements::most(std::int64_t step, double rate) const {
  const double counted = count(step);
  return poisson_most(rate * (counted + 4 * std::sqrt(counted)));
}

double TurnedElements::most(std::int64_t step, double rate, std::int64_t elements) const {
  const double all = steps_.at(step).elements;
  return all > 0 ? most(step, rate * double(elements) / all) : 0;
}

double TurnedElements::moved(std::int64_t step, const std::string& kind, std::size_t tensor) const {
  return steps_.at(step).moved.at(kind).at(tensor);
}

double TurnedElements::scale(std::int64_t step, const std::string& kind, std::size_t tensor) const {
  const TensorSketch& of = sketch(*first_.steps.at(step).find(kind), tensor);
  return moves(kind) ? moved(step, kind, tensor) * std::sqrt(double(of.numel)) : finite(of.norm());
}

double TurnedElements::mean_share(std::int64_t step, const std::string& kind) const {
  return steps_.at(step).mean_shares.at(kind);
}

}  // namespace zero
