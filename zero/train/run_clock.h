#pragma once
// RunClock: when a run is to be saved and when it is to end, by a clock. One rank asks its own and tells the others.
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "zero/config/config.h"

namespace zero {

struct RunClockOptions {
  std::chrono::duration<double> save_every{};                 // 0: never
  std::optional<std::chrono::duration<double>> time_limit{};  // from the start of the process
  std::chrono::duration<double> assumed_save{};               // of a checkpoint, until the first one was written
};

/// A checkpoint of so many bytes is assumed to be written at 100 MB/s, within a tenth of the limit.
RunClockOptions clock_options_of(const Config& config, std::int64_t checkpoint_bytes = 0);

class RunClock {
 public:
  /// What a run would do next.
  enum class Next : std::uint8_t { step, validation, part_of_validation };
  using Clock = std::chrono::steady_clock;
  using Now = std::function<Clock::time_point()>;
  RunClock(const RunClockOptions& options, Clock::time_point program_start, Now now = Clock::now);

  /// A step has ended, or the first one begins.
  void stepped();
  /// A validation begins; a part of it has ended, after which it may be left; it has ended as a whole.
  void validation_begins();
  void validated_part();
  void validated();
  /// A checkpoint of the run as it stands was written, or tried, or begun, for which the run waited for so long.
  void saved(std::chrono::duration<double> took);
  /// Notes if one that was begun is being written while the run goes on, and the time it has taken so far or did take.
  void saves_behind(bool under_way, std::chrono::duration<double> time = {});
  /// A checkpoint is there: the longest one so far is how long they take.
  void written() { measured_ = true; }

  bool save_is_due() const;
  /// True if what follows would come too near to the limit: what is next and a checkpoint, each as long as the longest so
  /// far, with a reserve of the longer one of a step and a checkpoint and a twentieth of the limit (a minute at most). One
  /// that is being written comes to its end first, and may take as long once more.
  bool end_is_due(Next next = Next::step) const;

 private:
  std::chrono::duration<double> longest_save() const;

  RunClockOptions options_;
  Clock::time_point start_;
  Now now_;
  std::optional<Clock::time_point> last_step_;
  Clock::time_point last_part_;  // of a validation
  Clock::time_point last_save_;
  bool behind_ = false;    // one is being written
  bool measured_ = false;  // one was written
  std::chrono::duration<double> longest_step_{}, longest_part_{}, longest_validation_{}, longest_save_{};
  std::chrono::duration<double> validation_{};  // the one that is under way
};

}  // namespace zero
