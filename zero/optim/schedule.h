#pragma once
// Learning-rate schedules: pure functions of the step.
#include <cstdint>

namespace zero {

enum class ScheduleType : std::uint8_t { constant, linear, cosine, wsd };

struct ScheduleOptions {
  ScheduleType type = ScheduleType::cosine;
  double lr = 1e-3;
  std::int64_t steps = 0;         // of the whole run
  std::int64_t warmup_steps = 0;  // linear warm-up, counted in steps
  double min_lr_ratio = 0.1;      // the floor, as a fraction of lr; constant has none
  double decay_ratio = 0.2;       // wsd: the last fraction of steps, in which the rate falls linearly to the floor
};

/// Returns the learning rate in step s, counted from 0, as a fraction of its peak. In the warm-up it is
/// (s+1)/warmup_steps. After the warm-up, with t = (s - warmup_steps) / (steps - warmup_steps) and floor =
/// min_lr_ratio, it is
///   constant 1;  linear 1 - (1-floor)t;  cosine floor + (1-floor)(1+cos(pi t))/2;
///   wsd 1, and over the last decay_ratio*steps steps linearly towards the floor.
/// Steps at or beyond `steps` get the value at t = 1.
double schedule_part(const ScheduleOptions& options, std::int64_t step_from_0);

/// Returns the learning rate of a step: lr times that fraction.
double learning_rate(const ScheduleOptions& options, std::int64_t step_from_0);

}  // namespace zero
