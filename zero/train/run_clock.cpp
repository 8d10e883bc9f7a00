#include "zero/train/run_clock.h"

#include <algorithm>

#include "base/time_span.h"

namespace zero {

using Seconds = std::chrono::duration<double>;

RunClockOptions clock_options_of(const Config& config, std::int64_t checkpoint_bytes) {
  constexpr double slow = 100e6;  // bytes per second
  RunClockOptions options{std::chrono::duration<double, std::ratio<60>>(config.checkpoint.every_minutes),
                          time_span_of(config.job.time_limit)};
  if (options.time_limit)
    options.assumed_save = std::min(Seconds(double(checkpoint_bytes) / slow), Seconds(*options.time_limit / 10));
  return options;
}

RunClock::RunClock(const RunClockOptions& options, Clock::time_point program_start, Now now)
    : options_(options), start_(program_start), now_(std::move(now)), last_save_(now_()) {}

void RunClock::stepped() {
  const Clock::time_point now = now_();
  if (last_step_) longest_step_ = std::max(longest_step_, Seconds(now - *last_step_));
  last_step_ = now;
}

void RunClock::validation_begins() {
  last_part_ = now_();
  validation_ = {};
}

void RunClock::validated_part() {
  const Clock::time_point now = now_();
  const Seconds part = now - last_part_;
  validation_ += part;
  longest_part_ = std::max(longest_part_, part);
  last_part_ = now;
  last_step_ = now;  // the time before it is not part of a step
}

void RunClock::validated() {
  validated_part();
  longest_validation_ = std::max(longest_validation_, validation_);
}

void RunClock::saved(Seconds took) {
  longest_save_ = std::max(longest_save_, took);
  last_save_ = now_();
  last_step_ = last_part_ = last_save_;  // the time before it is not part of a step
}

void RunClock::saves_behind(bool under_way, Seconds time) {
  behind_ = under_way;
  longest_save_ = std::max(longest_save_, time);
}

Seconds RunClock::longest_save() const {
  return measured_ ? longest_save_ : std::max(longest_save_, options_.assumed_save);
}

bool RunClock::save_is_due() const {
  return options_.save_every > Seconds(0) && now_() - last_save_ >= options_.save_every;
}

bool RunClock::end_is_due(Next next) const {
  if (!options_.time_limit) return false;
  const Seconds reserve = std::max(longest_step_, longest_save()) + std::min(Seconds(60), *options_.time_limit / 20);
  const Seconds rest = behind_ ? longest_save() : Seconds(0);
  const Seconds longest = next == Next::step         ? longest_step_
                          : next == Next::validation ? longest_validation_
                                                     : longest_part_;
  return now_() - start_ + longest + rest + longest_save() + reserve >= *options_.time_limit;
}

}  // namespace zero
