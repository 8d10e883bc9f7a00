#pragma once
// NcclWatchdog: tracks the collectives in flight on one GPU, and alone aborts them. Its thread checks the oldest one.
// At the deadline, or if NCCL reports an error, it aborts every communicator that it watches.
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/communicator.h"
#include "comm/flight_recorder.h"

struct ncclComm;

namespace zero {

class NcclWatchdog {
 public:
  /// Collective.
  NcclWatchdog(Communicator& host, int device, std::chrono::duration<double> deadline,
               FlightRecorderOptions recorder = {});
  ~NcclWatchdog();

  /// Guards every NCCL call on this device. While it is held and has_failed() is false, no communicator is destroyed.
  std::mutex& nccl_lock() { return nccl_lock_; }

  void watch(ncclComm* comm);
  /// Waits for the communicator's calls in flight. It aborts instead if something failed or during an exception. The
  /// handle is invalid afterwards.
  void retire(ncclComm* comm);

  /// Call before an NCCL call: throws earlier failures, and informs the flight recorder.
  void announce(const CallRecord& call);
  /// Polls until a call on the communicator is on its stream. The call itself returned `code`. A communicator is
  /// unusable after a failed call: all are aborted.
  void settle(ncclComm* comm, int code, const char* what);
  /// Call after an NCCL call: an event on the stream (a cudaStream_t) marks its completion.
  void follow(const CallRecord& call, void* stream);

  /// Aborts all communicators silently: the rank has failed elsewhere. check() throws from now on.
  void abandon() noexcept;

  /// Throws Error if a collective failed or missed its deadline. The first time it asks other nodes for missing ranks.
  /// Only for the thread that makes the calls, and not under nccl_lock().
  void check() const;
  /// True if a collective has failed. The communicators are then gone.
  bool has_failed() const;

 private:
  struct Flight {
    std::string words;
    void* event;
    std::chrono::steady_clock::time_point begin;
  };
  void run();
  void say_unless_thrown(std::unique_lock<std::mutex>& guard);
  bool look();
  void fail(const std::string& what);
  void end_all(const std::vector<ncclComm*>& comms);
  void* take_event();

  int device_;
  std::chrono::duration<double> deadline_;
  FlightRecorder recorder_;
  std::mutex nccl_lock_;
  mutable std::mutex lock_;  // of the members below
  mutable std::condition_variable wake_;
  std::deque<Flight> flights_;
  std::vector<void*> events_;  // not in use
  std::vector<ncclComm*> comms_;
  mutable std::string failure_;
  mutable bool must_ask_ = false;  // no rank of this node is missing
  mutable bool said_ = false;      // check() has thrown it
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace zero
