#include "zero/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace zero {
namespace {

/// Returns the fraction of lr after the warm-up.
double remaining_part(const ScheduleOptions& o, std::int64_t s) {
  const double floor = o.min_lr_ratio;
  const auto length = static_cast<double>(o.steps - o.warmup_steps);
  const double t = length > 0 ? std::min(1.0, static_cast<double>(s - o.warmup_steps) / length) : 1.0;
  switch (o.type) {
    case ScheduleType::constant:
      return 1.0;
    case ScheduleType::linear:
      return 1.0 - (1.0 - floor) * t;
    case ScheduleType::cosine:
      return floor + (1.0 - floor) * (1.0 + std::cos(std::numbers::pi * t)) / 2.0;
    case ScheduleType::wsd: {
      const double decay_steps = o.decay_ratio * static_cast<double>(o.steps);
      const double into_decay = static_cast<double>(s) - (static_cast<double>(o.steps) - decay_steps);
      if (into_decay <= 0 || decay_steps <= 0) return 1.0;
      return 1.0 - (1.0 - floor) * std::min(1.0, into_decay / decay_steps);
    }
  }
  ZERO_CHECK(false, "unknown schedule");
}

}  // namespace

double schedule_part(const ScheduleOptions& options, std::int64_t step_from_0) {
  if (step_from_0 < options.warmup_steps)
    return static_cast<double>(step_from_0 + 1) / static_cast<double>(options.warmup_steps);
  return remaining_part(options, step_from_0);
}

double learning_rate(const ScheduleOptions& options, std::int64_t step_from_0) {
  return options.lr * schedule_part(options, step_from_0);
}

}  // namespace zero
