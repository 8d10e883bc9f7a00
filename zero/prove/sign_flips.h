#pragma once
// SignFlips: elements whose update changed sign. Some updates follow a gradient's sign (Lion, Adam's first steps).
// Rounding then flips the updates of elements with a gradient near zero, each by a full step. Flips are rare: a small
// tensor may have some in one run and none in the next, so its measured distance predicts little. The number of flips
// over all tensors is a good predictor, and a Poisson quantile bounds the number in one tensor.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "zero/prove/run_record.h"

namespace zero {

class SignFlips {
 public:
  /// Two runs with the same steps and tensors; the first record of each is its start. `first` must outlive this object.
  SignFlips(const RunRecord& first, const RunRecord& second);

  /// Returns true for the kinds that steps change: the weights and the optimizer's copy of them.
  static bool moves(const std::string& kind) { return kind == "master" || kind == "weights"; }

  /// Estimated sign flips over all tensors up to `step`; 0 if updates are proportional to gradients.
  double count(std::int64_t step) const { return steps_.at(step).count; }
  /// Plausible maximum of flips up to `step`, for two runs that flip `rate` times as many signs. The first overload is
  /// for all tensors, the second for one tensor by its size, the third for a tensor of mean size.
  double most(std::int64_t step, double rate) const;
  double most(std::int64_t step, double rate, const std::string& kind, std::size_t tensor) const;
  double most_of_one(std::int64_t step, double rate) const;

  /// Share of its scale by which a tensor of a kind differs at `step` after one flip in it, or in a related
  /// tensor.
  double effect(std::int64_t step, const std::string& kind) const;

  /// For kinds that steps change: the distance that an element has moved by `step`, summed over steps, as a root mean
  /// square over the tensor.
  double moved(std::int64_t step, const std::string& kind, std::size_t tensor) const;
  /// The reference length for a distance: how far a tensor has moved if steps move it, otherwise its norm.
  double scale(std::int64_t step, const std::string& kind, std::size_t tensor) const;

 private:
  struct Step {
    std::map<std::string, std::vector<double>> moved;
    std::map<std::string, double> mean_shares;  // by kind: mean share of the distance over tensors
    double count = 0;
    double expected = 0;               // predicted from gradient errors, for sign updates
    double elements = 0, tensors = 0;  // number that have moved
    /// By tensor: number of flips due to gradients that are pure rounding (GPT-2's key biases), in any precision.
    std::vector<double> aimless;
  };
  static void carry(const Step& before, Step& step);
  double likely(std::int64_t step) const;
  void measure_ways(std::int64_t step, const Step* before);
  void measure_shares(std::int64_t step, const StepRecord& second);
  /// `shares`: relative errors of the tensors' gradients.
  void count_flips(std::int64_t step, const StepRecord& second, const std::vector<double>& shares);

  const RunRecord& first_;
  std::map<std::int64_t, Step> steps_;
};

/// The smallest number that a Poisson variable of this mean exceeds with probability at most 1e-6.
double poisson_most(double mean);

}  // namespace zero
