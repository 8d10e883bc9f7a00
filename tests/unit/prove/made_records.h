#pragma once
// Records of fictitious runs, for tests of verdicts about runs.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"
#include "zero/prove/run_record.h"

namespace zero::testing {

/// Returns values uniform in [-1, 1), always the same for a seed.
inline std::vector<double> random_values(std::uint64_t seed, std::size_t count) {
  SplitMix64 random(seed);
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(double(random.next() >> 11) / double(1ull << 52) - 1);
  return values;
}

inline TensorSketch sketched(const std::vector<double>& values) {
  TensorSketch sketch;
  sketch.add(0, values);
  return sketch;
}

/// The errors of a fictitious run.
struct Errors {
  double noise = 0;           // relative random error in every value
  std::uint64_t seed = 0;     // of the noise
  double gradient_scale = 1;  // one-sided
};

inline constexpr std::size_t made_tensors = 12, made_elements = 512;

inline KindRecord made_kind(const std::string& kind, std::int64_t step, const Errors& errors) {
  KindRecord record{kind, {}};
  for (std::size_t t = 0; t < made_tensors; ++t) {
    const std::uint64_t of = mix_seed(mix_seed(std::hash<std::string>()(kind), std::uint64_t(step)), t);
    std::vector<double> values = random_values(of, made_elements);
    const std::vector<double> noise = random_values(mix_seed(of, errors.seed + 1), made_elements);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = values[i] * (kind == "gradient" ? errors.gradient_scale : 1) + noise[i] * errors.noise;
    record.tensors.push_back({"tensor" + std::to_string(t), sketched(values)});
  }
  return record;
}

/// Steps 1 to 3 after a start without errors.
inline RunRecord made_run(const Errors& errors) {
  RunRecord run;
  const double none = std::numeric_limits<double>::quiet_NaN();
  run.steps[0] = {{none, none, 1, 0}, true, {made_kind("master", 0, {}), made_kind("weights", 0, {})}};
  for (std::int64_t step = 1; step <= 3; ++step) {
    StepRecord record;
    record.has_figures = true;
    for (const char* kind : {"gradient", "master", "weights"}) record.kinds.push_back(made_kind(kind, step, errors));
    double squares = 0;
    for (const TensorRecord& tensor : record.kinds.front().tensors) squares += tensor.sketch.squares;
    const double off = random_values(errors.seed + 77 + std::uint64_t(step), 1).front() * errors.noise / 32;
    record.figures = {5.0 + off, std::sqrt(squares), 1, step};
    run.steps[step] = record;
  }
  return run;
}

}  // namespace zero::testing
