#pragma once
// SharedWindow: ranks of one node exchange data through one shared segment, in rounds.
//
// Every rank owns a few slots. In round k a rank waits until all ranks have finished round k - slots, writes its slot k
// mod slots, and posts the round. The others wait for the post, read the slot in place, and finish the round. All ranks
// count the same rounds, since all issue the same calls. Two counters per rank therefore suffice for synchronisation,
// and a rank can be several rounds ahead of another. Each rank publishes its current call, so a mismatch or a missing
// rank can be named.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/mpi/shared_counter.h"
#include "comm/shared_segment.h"

namespace zero {

struct WindowShape {
  int ranks = 1;
  int slots = 4;                                    // per rank; at least 2
  std::size_t slot_bytes = std::size_t{512} << 10;  // a multiple of 64
  std::size_t bytes() const;                        // of the whole segment
};

class SharedWindow {
 public:
  /// `segment` must hold shape.bytes() zeros. `names` holds the names of ranks for messages.
  SharedWindow(SharedSegment segment, const WindowShape& shape, int rank, std::vector<std::string> names,
               std::chrono::duration<double> deadline);
  SharedWindow(SharedWindow&&) noexcept = default;
  /// Makes other ranks' later waits for this rank fail at once. Does not do so if an exception is in flight. That
  /// exception is the cause, and the code that catches it reports it.
  ~SharedWindow();

  int rank() const { return rank_; }
  int size() const { return shape_.ranks; }
  std::size_t slot_bytes() const { return shape_.slot_bytes; }

  /// Publishes the call to which the following rounds belong. A call without rounds is not published.
  void begin(const CallRecord& call);
  /// Waits until this rank's next slot is free, and returns it.
  std::byte* open();
  /// Makes the slot from the last open() readable by the other ranks.
  void post();
  /// Starts reading the next round. Until finish(), slot_of() refers to it.
  void read() { ++read_round_; }
  /// Waits until rank r has posted the current round. Throws Error on a mismatch of calls and at the deadline.
  void await(int r);
  void await_all();
  const std::byte* slot_of(int r) const;
  /// Declares that this rank no longer needs the round's slots.
  void finish();

 private:
  static constexpr int recent_calls = 16;  // more than a rank can be ahead of another
  struct IndexedCall {
    std::uint64_t index;
    CallRecord call;
  };
  struct RankState {
    SharedCounter posted;
    SharedCounter finished;
    alignas(64) std::atomic<std::uint64_t> calls;
    std::atomic<std::uint32_t> ended;  // the rank issues no more calls here
    IndexedCall recent[recent_calls];
  };
  friend struct WindowShape;

  RankState& state_of(int r) const;
  std::byte* slot(int r, std::uint32_t round) const;
  void await_arrival(int r);
  void compare(int r);
  bool has_ended(int r) const { return state_of(r).ended.load(std::memory_order_acquire) != 0; }
  [[noreturn]] void give_up(bool posted, std::uint32_t round);

  SharedSegment segment_;
  WindowShape shape_;
  int rank_;
  std::vector<std::string> names_;
  std::chrono::duration<double> deadline_;
  SpinLimits limits_;
  CallRecord call_;
  std::uint64_t calls_ = 0;
  std::uint32_t write_round_ = 0;
  std::uint32_t read_round_ = 0;
  int exceptions_ = std::uncaught_exceptions();  // in flight when this object was made
  std::vector<bool> compared_;                   // by rank: whether its call has been compared with this rank's
};

}  // namespace zero
