#pragma once
// RunClock: decides by time when a run is saved and when it ends. One rank reads its clock and informs the others.
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "zero/config/config.h"

namespace zero {

struct RunClockOptions {
  std::chrono::duration<double> save_every{};                 // 0: never
  std::optional<std::chrono::duration<double>> time_limit{};  // from the start of the process
  std::chrono::duration<double> assumed_save{};               // time of a checkpoint, until one was measured
};

/// Assumes that a checkpoint of `checkpoint_bytes` is written at 100 MB/s, but takes at most a tenth of the limit.
RunClockOptions clock_options_of(const Config& config, std::int64_t checkpoint_bytes = 0);

class RunClock {
 public:
  /// The next activity of a run.
  enum class Next : std::uint8_t { step, validation, part_of_validation };
  using Clock = std::chrono::steady_clock;
  using Now = std::function<Clock::time_point()>;
  RunClock(const RunClockOptions& options, Clock::time_point program_start, Now now = Clock::now);

  /// Call it when a step has ended, and before the first one.
  void stepped();
  /// Call these when a validation begins, after each part at which it may stop, and when it ends.
  void validation_begins();
  void validated_part();
  void validated();
  /// Call it when a checkpoint of the current state was written, tried or begun. `took`: the time that the run waited
  /// for it.
  void saved(std::chrono::duration<double> took);
  /// Records whether a checkpoint is being written in the background, and the time that it has taken so far or took in
  /// total.
  void saves_behind(bool under_way, std::chrono::duration<double> time = {});
  /// Records that a checkpoint exists. From now on the longest measured time replaces the assumed time.
  void written() { measured_ = true; }

  bool save_is_due() const;
  /// Returns true if the remaining time is too short for the next activity and a checkpoint after it. Each counts with
  /// its longest time so far. The reserve is the longer of a step and a checkpoint, plus a twentieth of the limit (at
  /// most a minute). A checkpoint in the background must end first, and counts in addition.
  bool end_is_due(Next next = Next::step) const;

 private:
  std::chrono::duration<double> longest_save() const;

  RunClockOptions options_;
  Clock::time_point start_;
  Now now_;
  std::optional<Clock::time_point> last_step_;
  Clock::time_point last_part_;  // end of the last part of a validation
  Clock::time_point last_save_;
  bool behind_ = false;    // a checkpoint is being written in the background
  bool measured_ = false;  // a checkpoint was written
  std::chrono::duration<double> longest_step_{}, longest_part_{}, longest_validation_{}, longest_save_{};
  std::chrono::duration<double> validation_{};  // time of the current validation
};

}  // namespace zero
