#include "zero/prove/comparison.h"

#include <cmath>
#include <sstream>
#include <vector>

#include "base/log.h"

namespace zero {
namespace {

std::string phase_of(const std::string& kind) {
  return kind == "gradient" || kind == "weights" ? kind : std::string("update");
}

std::string name_of(const std::string& kind, const std::string& tensor) {
  return kind == "gradient" || kind == "weights" ? tensor : kind + " of " + tensor;
}

std::string exact(double value) {
  std::ostringstream out;
  out.precision(17);
  out << value;
  return out.str();
}

std::string rough(double value) {
  std::ostringstream out;
  out.precision(2);
  out << value;
  return out.str();
}

// A trained step always has gradients, so only the start has none.
bool is_start(const StepRecord& step) { return !step.find("gradient"); }

/// Both runs' records of a step that both have trained, in order.
struct StepPair {
  std::int64_t step;
  const StepRecord &run, &other;
};
std::vector<StepPair> common_steps(const RunRecord& run, const RunRecord& other) {
  std::vector<StepPair> pairs;
  for (const auto& [step, record] : run.steps) {
    const auto found = other.steps.find(step);
    if (found != other.steps.end() && is_start(record) == is_start(found->second))
      pairs.push_back({step, record, found->second});
  }
  return pairs;
}

Parting other_tensors(std::int64_t step, const KindRecord& kind) {
  return {step, phase_of(kind.kind), "", "the two runs have other tensors"};
}

std::optional<Parting> other_bit(std::int64_t step, const KindRecord& run, const KindRecord* other, std::string phase) {
  if (!other || other->tensors.size() != run.tensors.size()) return other_tensors(step, run);
  std::optional<Parting> found;
  double most = -1;
  for (std::size_t t = 0; t < run.tensors.size(); ++t) {
    const TensorSketch &a = run.tensors[t].sketch, &b = other->tensors[t].sketch;
    if (a.hash == b.hash) continue;
    const double off = distance(a, b) / std::max(b.norm(), 1e-300);
    if (off <= most) continue;
    most = off;
    found = Parting{step, phase, name_of(run.kind, run.tensors[t].tensor),
                    text("different bits, off by ", rough(off), " of its norm")};
  }
  return found;
}

std::optional<Parting> other_states(std::int64_t step, const StepRecord& run, const StepRecord& other,
                                    const std::string& phase) {
  for (const KindRecord& kind : run.kinds) {
    if (kind.kind == "gradient") continue;
    if (auto found = other_bit(step, kind, other.find(kind.kind), phase.empty() ? phase_of(kind.kind) : phase))
      return found;
  }
  return std::nullopt;
}

std::optional<Parting> other_figure(std::int64_t step, const std::string& phase, double run, double other) {
  if (run == other || (std::isnan(run) && std::isnan(other))) return std::nullopt;
  return Parting{step, phase, "", text("is ", exact(run), " and not ", exact(other))};
}

std::optional<Parting> other_counts(std::int64_t step, const std::string& phase, const StepFigures& run,
                                    const StepFigures& other) {
  if (run.updates != other.updates)
    return Parting{step, phase, "", text("the optimizer counts ", run.updates, " steps and not ", other.updates)};
  if (run.loss_scale != other.loss_scale)
    return Parting{step, phase, "", text("the loss scale is ", run.loss_scale, " and not ", other.loss_scale)};
  return std::nullopt;
}

}  // namespace

std::string Parting::describe() const {
  std::string words = text("step ", step, ", ", phase);
  if (!tensor.empty()) words += ", " + tensor;
  return words + ": " + why;
}

std::optional<Parting> first_other_bit(const RunRecord& run, const RunRecord& other) {
  for (const auto& [step, a, b] : common_steps(run, other)) {
    if (is_start(a)) {
      if (auto found = other_states(step, a, b, "start")) return found;
      continue;
    }
    if (auto found = other_figure(step, "loss", a.figures.loss, b.figures.loss)) return found;
    if (const KindRecord* gradient = a.find("gradient"))
      if (auto found = other_bit(step, *gradient, b.find("gradient"), "gradient")) return found;
    if (auto found = other_figure(step, "norm", a.figures.grad_norm, b.figures.grad_norm)) return found;
    if (auto found = other_counts(step, "update", a.figures, b.figures)) return found;
    if (auto found = other_states(step, a, b, "")) return found;
  }
  return std::nullopt;
}

std::optional<Parting> first_contradiction(const RunRecord& run) {
  for (const auto& [step, record] : run.steps) {
    for (const KindRecord& kind : record.kinds)
      for (const TensorRecord& tensor : kind.tensors)
        if (tensor.other_rank >= 0)
          return Parting{step, "copies", name_of(kind.kind, tensor.tensor),
                         text("rank ", tensor.other_rank, " holds different values (", phase_of(kind.kind), ")")};
    const KindRecord* gradient = record.find("gradient");
    if (is_start(record) || !gradient) continue;
    double squares = 0;
    for (const TensorRecord& tensor : gradient->tensors) squares += tensor.sketch.squares;
    const double norm = std::sqrt(squares), told = record.figures.grad_norm;
    if (!(std::abs(norm - told) <= 1e-6 * norm) && std::isfinite(norm))
      return Parting{step, "norm", "",
                     text("is reported as ", exact(told), ", but the norm of the gradients is ", exact(norm))};
  }
  return std::nullopt;
}

std::optional<Parting> wrong_start(const RunRecord& run, const RunRecord& began) {
  const auto& [step, start] = *run.steps.begin();
  const auto found = began.steps.find(step);
  if (found == began.steps.end()) return Parting{step, "resume", "", "the run that it goes on from has no such step"};
  if (auto parting = other_counts(step, "resume", start.figures, found->second.figures)) return parting;
  return other_states(step, start, found->second, "resume");
}

namespace {

/// Compares a step's records in order until one exceeds its bound.
class Judge {
 public:
  Judge(RoundingVerdict& verdict, const RoundingBounds& bounds, const std::string& precision)
      : verdict_(verdict), bounds_(bounds), precision_(precision) {}

  /// Finds the tensor that exceeds its bound the most.
  void kind(std::int64_t step, const KindRecord& run, const KindRecord* other) {
    if (!other || other->tensors.size() != run.tensors.size()) return part(other_tensors(step, run));
    double worst = 0;
    std::optional<Parting> parting;
    for (std::size_t t = 0; t < run.tensors.size(); ++t) {
      if (!run.tensors[t].numbers) continue;
      const TensorSketch &a = run.tensors[t].sketch, &b = other->tensors[t].sketch;
      if (!std::isfinite(a.norm()) && !std::isfinite(b.norm())) continue;  // fp16: both skip the step
      const RoundingBound bound = bounds_.tensor(precision_, step, run.kind, t);
      const double share = bound.share(a, b);
      const std::string name = name_of(run.kind, run.tensors[t].tensor);
      note(share, text("step ", step, ", ", phase_of(run.kind), ", ", name));
      if (share <= 1 || (parting && share <= worst)) continue;
      worst = share;
      const double norm = std::max(b.norm(), 1e-300);
      parting = Parting{step, phase_of(run.kind), name,
                        text("off by ", rough(distance(a, b) / norm), " of its norm, and rounding explains ",
                             rough(bound.distance / norm),
                             bound.flips > 0 ? text(" and ", bound.flips, " elements that go the other way") : "")};
    }
    if (parting) part(*parting);
  }

  void figure(std::int64_t step, const std::string& phase, double run, double other, double bound) {
    if (!std::isfinite(run) && !std::isfinite(other)) return;
    const double off = std::abs(run - other);
    note(off / bound, text("step ", step, ", ", phase));
    if (off <= bound) return;
    part({step, phase, "",
          text("is ", exact(run), " and not ", exact(other), ", and rounding explains ", rough(bound))});
  }

  void part(const Parting& parting) {
    if (!verdict_.parting) verdict_.parting = parting;
  }
  bool done() const { return verdict_.parting.has_value(); }

 private:
  void note(double share, const std::string& what) {
    if (done() || !(share > verdict_.most)) return;
    verdict_.most = share;
    verdict_.most_of = what;
  }

  RoundingVerdict& verdict_;
  const RoundingBounds& bounds_;
  const std::string& precision_;
};

/// For each gradient, the component of the residual along the gradient, relative to the residual.
std::optional<Parting> drift(std::int64_t step, const KindRecord& run, const KindRecord& other) {
  std::vector<double> residuals;
  double relative = 0;
  for (std::size_t t = 0; t < run.tensors.size(); ++t) {
    const TensorSketch &a = run.tensors[t].sketch, &b = other.tensors[t].sketch;
    const double off = distance(a, b), norm = b.norm();
    if (off == 0 || norm == 0 || !std::isfinite(off)) continue;
    residuals.push_back((a.norm() - norm) / off);
    relative += (a.norm() - norm) / norm;
  }
  if (!one_sided(residuals)) return std::nullopt;
  return Parting{step, "gradient", "",
                 text("the gradients of ", residuals.size(), " tensors are off to one side, by ",
                      rough(relative / double(residuals.size())), " of their norm on average, which rounding is not")};
}

}  // namespace

RoundingVerdict within_rounding(const RunRecord& run, const RunRecord& other, const RoundingBounds& bounds,
                                const std::string& precision) {
  RoundingVerdict verdict;
  Judge judge(verdict, bounds, precision);
  for (const auto& [step, a, b] : common_steps(run, other)) {
    if (is_start(a)) {
      if (auto found = other_states(step, a, b, "start")) judge.part(*found);
      continue;
    }
    judge.figure(step, "loss", a.figures.loss, b.figures.loss, bounds.loss(precision, step));
    const KindRecord *gradient = a.find("gradient"), *of_other = b.find("gradient");
    if (gradient) judge.kind(step, *gradient, of_other);
    // In later steps, gradients share errors of the weights.
    if (gradient && step == bounds.first_step() && !judge.done())
      if (const auto found = drift(step, *gradient, *of_other)) judge.part(*found);
    judge.figure(step, "norm", a.figures.grad_norm, b.figures.grad_norm, bounds.grad_norm(precision, step));
    if (const auto found = other_counts(step, "update", a.figures, b.figures)) judge.part(*found);
    for (const KindRecord& kind : a.kinds)
      if (kind.kind != "gradient") judge.kind(step, kind, b.find(kind.kind));
    if (judge.done()) break;
  }
  return verdict;
}

}  // namespace zero
