#pragma once
// NcclWatchdog: knows the collectives that are under way on one GPU, and is the only one that ends them. Its thread
// looks at the oldest of them; at the deadline, or when NCCL reports an error, it aborts every communicator it was told
// of.
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

  /// Guards every call of NCCL on this device. While it is held and has_failed() is false, no communicator goes away.
  std::mutex& nccl_lock() { return nccl_lock_; }

  void watch(ncclComm* comm);
  /// Waits for what is under way on it; aborts instead when something failed or an exception is on its way. The handle
  /// is gone afterwards.
  void retire(ncclComm* comm);

  /// Before a call: throws what went wrong earlier, and tells the flight recorder.
  void announce(const CallRecord& call);
  /// Polls until a call on the communicator is on its stream. The call itself returned `code`. A communicator whose
  /// call failed is of no further use: all are aborted.
  void settle(ncclComm* comm, int code, const char* what);
  /// After it: an event on the stream (a cudaStream_t) tells when it is done.
  void follow(const CallRecord& call, void* stream);

  /// Aborts all communicators without a word: the rank has failed elsewhere. check() throws from now on.
  void abandon() noexcept;

  /// Throws Error when a collective failed or missed its deadline; before the first time, asks other nodes who is
  /// missing. By the thread that makes the calls, and not under nccl_lock().
  void check() const;
  /// Whether that has happened: the communicators are gone then.
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
  mutable std::mutex lock_;  // of what follows
  mutable std::condition_variable wake_;
  std::deque<Flight> flights_;
  std::vector<void*> events_;  // not in use
  std::vector<ncclComm*> comms_;
  mutable std::string failure_;
  mutable bool must_ask_ = false;  // nobody of this node is missing
  mutable bool said_ = false;      // check() has thrown it
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace zero
