#pragma once
// ActivityClock: measures how one rank's thread spends its time. Every moment counts once, for the innermost scope.
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace zero {

enum class Activity : std::uint8_t {
  products,   // matrix products
  attention,  // its kernels
  kernels,    // other computation
  gathers,    // all-gathers and other transfers without sums
  sums,       // reduce-scatters and all-reduces
  disk,       // waiting for offloaded states and weights
  data,       // reading batches
  ranks,      // waiting for other ranks to join a call
  other
};
inline constexpr int activities = 9;
const char* name_of(Activity activity);

/// Details of an activity. The texts must live as long as the program. Null means that there is none.
struct Doing {
  Activity activity = Activity::other;
  const char* what = nullptr;   // a more exact name
  const char* phase = nullptr;  // of the step
  int unit = -1;                // of the model; -1: none
  std::int64_t bytes = 0;       // bytes that it moves
};

/// Nanoseconds of the node's monotonic clock, which all its processes share.
std::int64_t monotonic_nanoseconds();

/// A period in which a thread did one thing.
struct TimeSlice {
  std::int64_t begin = 0, end = 0;  // monotonic_nanoseconds()
  Doing doing;
};

/// Sums over a period, by activity.
struct ActivityTimes {
  std::array<std::int64_t, activities> nanoseconds{}, bytes{};
  std::array<double, activities> best_rate{};  // bytes per second of the fastest large transfer; 0: there was none

  double seconds(Activity activity) const { return double(nanoseconds[std::size_t(activity)]) / 1e9; }
  double seconds() const;
};

/// Only one thread uses it.
class ActivityClock {
 public:
  using Now = std::int64_t (*)();
  explicit ActivityClock(Now now = monotonic_nanoseconds) : now_(now) {}

  /// Begins a period. Keeps its first `slices` slices.
  void begin(std::size_t slices = 0);
  /// Ends the period. Its parts add up to the time since begin().
  void end();

  const ActivityTimes& times() const { return times_; }
  const std::vector<TimeSlice>& slices() const { return slices_; }
  /// The number of slices that did not fit.
  std::int64_t left_out() const { return left_out_; }

 private:
  friend class ActivityScope;
  void turn_to(const Doing& doing);

  Now now_;
  Doing doing_;
  std::int64_t since_ = 0;
  ActivityTimes times_;
  std::vector<TimeSlice> slices_;
  std::size_t room_ = 0;  // for slices
  std::int64_t left_out_ = 0;
};

/// While this object lives, `clock` measures this thread. Afterwards the thread has its previous clock again.
class ActivityClockScope {
 public:
  explicit ActivityClockScope(ActivityClock& clock);
  ~ActivityClockScope();
  ActivityClockScope(const ActivityClockScope&) = delete;
  ActivityClockScope& operator=(const ActivityClockScope&) = delete;

 private:
  ActivityClock* before_;
};

/// While this object lives, the thread's time counts for this activity. Scopes nest. Does nothing on a thread without a
/// clock.
class ActivityScope {
 public:
  explicit ActivityScope(Activity activity) : ActivityScope(Doing{activity}) {}
  explicit ActivityScope(const Doing& doing);
  ~ActivityScope();
  ActivityScope(const ActivityScope&) = delete;
  ActivityScope& operator=(const ActivityScope&) = delete;

 private:
  ActivityClock* clock_;
  Doing before_;
  std::int64_t nanoseconds_before_ = 0;  // of the same activity
};

}  // namespace zero
