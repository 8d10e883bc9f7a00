#pragma once
// RunClock: decides by the clock when a run is saved and when it ends. One rank asks its own clock and informs the
// others.
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "zero/config/config.h"

namespace zero {

struct RunClockOptions {
  std::chrono::duration<double> save_every{};                 // 0: never
  std::optional<std::chrono::duration<double>> time_limit{};  // from the start of the process
  std::chrono::duration<double> assumed_save{};               // time of a checkpoint until the first one was written
};

/// Assumes that a checkpoint of that many bytes is written at 100 MB/s, within a tenth of the limit.
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
  /// Call them when a validation begins, when a part after which it may be left has ended, and when all of it has
  /// ended.
  void validation_begins();
  void validated_part();
  void validated();
  /// Call it when a checkpoint of the run as it stands was written, tried or begun. `took`: the time that the run
  /// waited for it.
  void saved(std::chrono::duration<double> took);
  /// Notes whether a checkpoint is being written in the background, and the time that it has taken so far or took in
  /// all.
  void saves_behind(bool under_way, std::chrono::duration<double> time = {});
  /// Notes that a checkpoint exists: from now on the longest one so far replaces the assumed time.
  void written() { measured_ = true; }

  bool save_is_due() const;
  /// True if the time limit is too near for the next activity and a checkpoint after it. Each counts as its longest so
  /// far. The reserve is the longer of a step and a checkpoint, plus a twentieth of the limit (at most a minute). A
  /// checkpoint in the background must end first, and counts once more.
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
