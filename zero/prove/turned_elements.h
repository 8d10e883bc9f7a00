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

  /// Of all tensors, up to `step`: as many as make up for the distance of the two runs. 0 where updates err no more than
  /// gradients do.
  double count(std::int64_t step) const { return steps_.at(step).count; }
  /// The most of all tensors that are plausible in two runs that turn `rate` times as many; of one of `elements`.
  double most(std::int64_t step, double rate) const;
  double most(std::int64_t step, double rate, std::int64_t elements) const;

  /// Of what steps move: how far an element has gone by `step`, the root of the mean square over a tensor's elements,
  /// added up over steps.
  double moved(std::int64_t step, const std::string& kind, std::size_t tensor) const;
  /// What a distance is a share of: the norm of how far a tensor has gone, where steps move it, else its norm.
  double scale(std::int64_t step, const std::string& kind, std::size_t tensor) const;
  /// The share that the distance of the two runs is: the root of the mean square over the tensors of a kind.
  double mean_share(std::int64_t step, const std::string& kind) const;

 private:
  struct Step {
    std::map<std::string, std::vector<double>> moved;
    std::map<std::string, double> mean_shares;
    double count = 0;
    double elements = 0;  // that were moved
  };
  void measure_ways(std::int64_t step, const Step* before);
  void measure_shares(std::int64_t step, const StepRecord& second);
  /// `shares`: of each tensor, those that the gradients err by.
  void count_turned(std::int64_t step, const StepRecord& second, const std::vector<double>& shares);

  const RunRecord& first_;
  std::map<std::int64_t, Step> steps_;
};

/// The smallest number that a Poisson variable of this mean exceeds with a probability of at most one in a million.
double poisson_most(double mean);

}  // namespace zero
