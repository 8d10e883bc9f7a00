#pragma once
// NcclWatchdog: tracks the collectives in flight on one GPU. Only the watchdog aborts them. Its thread checks the
// oldest collective. At the deadline, or if NCCL reports an error, it aborts every communicator that it watches.
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

  /// Guards every NCCL call on this device. While the lock is held and has_failed() is false, no communicator is
  /// destroyed.
  std::mutex& nccl_lock() { return nccl_lock_; }

  void watch(ncclComm* comm);
  /// Waits for the communicator's calls in flight and destroys it. After a failure or during an exception, aborts the
  /// communicator instead. The handle is invalid afterwards.
  void retire(ncclComm* comm);

  /// Call this before an NCCL call. Throws earlier failures and informs the flight recorder.
  void announce(const CallRecord& call);
  /// Polls until a call, which returned `code`, is queued on its stream. If the call failed, aborts all communicators
  /// and throws.
  void settle(ncclComm* comm, int code, const char* what);
  /// Call this after an NCCL call. Records an event on `stream` (a cudaStream_t) that marks the call's completion.
  void follow(const CallRecord& call, void* stream);

  /// Aborts all communicators without a message, because the rank has failed elsewhere. check() throws from now on.
  void abandon() noexcept;

  /// Throws Error if a collective failed or missed its deadline. The first time, asks other nodes for missing ranks.
  /// Only the thread that issues the calls may call this, and not while it holds nccl_lock().
  void check() const;
  /// True if a collective has failed. The communicators have then been aborted.
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
  mutable bool said_ = false;      // check() has thrown the failure
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace zero
