#pragma once
// TurnedElements: elements that a step moved the other way. Where an update goes by the sign of a gradient (Lion, the first
// steps of Adam) rounding turns those whose gradient is near zero, each by a whole step. They are few: a small tensor has
// some in one run and none in the next, so what lies between two measured runs of it tells nothing of a third. How many
// there are of all tensors does, and how many of them one tensor may have is a quantile of Poisson's distribution.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "zero/prove/run_record.h"

namespace zero {

class TurnedElements {
 public:
  /// Two runs of the same steps and tensors; the first record of each is its start. `first` outlives it.
  TurnedElements(const RunRecord& first, const RunRecord& second);

  /// Whether steps move what `kind` holds: the weights, and the optimizer's copy of them.
  static bool moves(const std::string& kind) { return kind == "master" || kind == "weights"; }

  /// Of all tensors, up to `step`: as many as make up for the distance of the two runs. 0 where updates err as gradients do.
  double count(std::int64_t step) const { return steps_.at(step).count; }
  /// The most, up to `step`, that are plausible in two runs that turn `rate` times as many: of all tensors; of one, by its
  /// size; of one of the mean size.
  double most(std::int64_t step, double rate) const;
  double most(std::int64_t step, double rate, const std::string& kind, std::size_t tensor) const;
  double most_of_one(std::int64_t step, double rate) const;

  /// By what share of its scale a tensor of a kind is off at `step` where one element of it, or of one that goes with it,
  /// has been turned before.
  double effect(std::int64_t step, const std::string& kind) const;

  /// Of what steps move: how far an element has gone by `step`, the root of the mean square over a tensor's elements,
  /// added up over steps.
  double moved(std::int64_t step, const std::string& kind, std::size_t tensor) const;
  /// What a distance is a share of: the norm of how far a tensor has gone, where steps move it, else its norm.
  double scale(std::int64_t step, const std::string& kind, std::size_t tensor) const;

 private:
  struct Step {
    std::map<std::string, std::vector<double>> moved;
    std::map<std::string, double> mean_shares;  // of the distance of the two runs, over the tensors of a kind
    double count = 0;
    double expected = 0;               // of what goes by signs, from the errors of the gradients
    double elements = 0, tensors = 0;  // that were moved
    /// Of each tensor: those without a gradient but for rounding (GPT-2's biases of keys), which turn in any precision.
    std::vector<double> aimless;
  };
  static void carry(const Step& before, Step& step);
  double likely(std::int64_t step) const;
  void measure_ways(std::int64_t step, const Step* before);
  void measure_shares(std::int64_t step, const StepRecord& second);
  /// `shares`: those that the gradients of the tensors err by.
  void count_turned(std::int64_t step, const StepRecord& second, const std::vector<double>& shares);

  const RunRecord& first_;
  std::map<std::int64_t, Step> steps_;
};

/// The smallest number that a Poisson variable of this mean exceeds with a probability of at most one in a million.
double poisson_most(double mean);

}  // namespace zero
