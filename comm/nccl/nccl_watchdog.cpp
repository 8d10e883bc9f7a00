#include "comm/nccl/nccl_watchdog.h"

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/cuda_check.h"
#include "base/error.h"
#include "base/log.h"
#include "comm/nccl/nccl_library.h"

namespace zero {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds look_every{50};
constexpr std::chrono::seconds patience{5};  // for answers of other nodes, whose deadlines pass about now

cudaEvent_t event_of(void* event) { return static_cast<cudaEvent_t>(event); }

}  // namespace

NcclWatchdog::NcclWatchdog(Communicator& host, int device, std::chrono::duration<double> deadline,
                           FlightRecorderOptions recorder)
    : device_(device), deadline_(deadline), recorder_(host, std::move(recorder)), thread_([this] { run(); }) {}

NcclWatchdog::~NcclWatchdog() {
  {
    std::lock_guard guard(lock_);
    ending_ = true;
  }
  wake_.notify_all();
  thread_.join();
  for (const Flight& flight : flights_) cudaEventDestroy(event_of(flight.event));
  for (void* event : events_) cudaEventDestroy(event_of(event));
}

void NcclWatchdog::watch(ncclComm* comm) {
  std::lock_guard guard(lock_);
  comms_.push_back(comm);
}

void NcclWatchdog::retire(ncclComm* comm) {
  bool failed = false;
  {
    std::lock_guard guard(lock_);
    const auto at = std::find(comms_.begin(), comms_.end(), comm);
    if (at == comms_.end()) return;  // already aborted
    comms_.erase(at);
    // An exception ends the job: other ranks may never make the calls that finalizing waits for.
    failed = !failure_.empty() || std::uncaught_exceptions() > 0;
  }
  std::lock_guard nccl(nccl_lock_);
  if (failed) {
    ncclCommAbort(comm);
    return;
  }
  const auto begin = Clock::now();
  ncclResult_t state = ncclCommFinalize(comm);
  while (state == ncclInProgress && Clock::now() - begin < deadline_) {
    std::this_thread::yield();
    if (ncclCommGetAsyncError(comm, &state) != ncclSuccess) break;
  }
  state == ncclSuccess ? ncclCommDestroy(comm) : ncclCommAbort(comm);
}

void NcclWatchdog::check() const {
  if (!has_failed()) return;
  std::string others;
  if (std::exchange(must_ask_, false)) others = recorder_.ask_other_nodes(patience);
  std::lock_guard guard(lock_);
  if (!others.empty()) failure_ += ": " + others;
  said_ = true;
  wake_.notify_all();
  throw Error(failure_);
}

bool NcclWatchdog::has_failed() const {
  std::lock_guard guard(lock_);
  return !failure_.empty();
}

void NcclWatchdog::announce(const CallRecord& call) {
  check();
  recorder_.record(call);
}

void NcclWatchdog::settle(ncclComm* comm, int code, const char* what) {
  const auto begin = Clock::now();
  auto state = static_cast<ncclResult_t>(code);
  while (state == ncclInProgress) {
    check();
    {
      std::lock_guard nccl(nccl_lock_);
      if (has_failed()) continue;  // the handle may be invalid
      if (const ncclResult_t asked = ncclCommGetAsyncError(comm, &state); asked != ncclSuccess) state = asked;
    }
    if (state != ncclInProgress) break;
    if (Clock::now() - begin > deadline_) {
      fail(text(what, " did not start within ", deadline_.count(), " s (comm.deadline_seconds)"));
      check();
    }
    std::this_thread::yield();
  }
  if (state != ncclSuccess) {
    const char* detail = ncclGetLastError(nullptr);
    fail(text(what, ": ", ncclGetErrorString(state), detail && *detail ? ": " : "", detail ? detail : "",
              " (NCCL_DEBUG=WARN tells more)"));
    check();
  }
}

void* NcclWatchdog::take_event() {
  std::lock_guard guard(lock_);
  if (!events_.empty()) {
    void* event = events_.back();
    events_.pop_back();
    return event;
  }
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  return event;
}

void NcclWatchdog::follow(const CallRecord& call, void* stream) {
  void* event = take_event();
  check_cuda(cudaEventRecord(event_of(event), static_cast<cudaStream_t>(stream)), "cudaEventRecord");
  {
    std::lock_guard guard(lock_);
    flights_.push_back({call.describe(), event, Clock::now()});
  }
  wake_.notify_all();
}

void NcclWatchdog::run() {
  cudaSetDevice(device_);
  std::unique_lock guard(lock_);
  while (!ending_) {
    if (flights_.empty())
      wake_.wait(guard);
    else
      wake_.wait_for(guard, look_every, [this] { return ending_; });
    guard.unlock();
    const bool well = look();
    guard.lock();
    if (!well) return say_unless_thrown(guard);
  }
}

/// The calling thread reports the failure; if it does not return, this one does.
void NcclWatchdog::say_unless_thrown(std::unique_lock<std::mutex>& guard) {
  if (!wake_.wait_for(guard, 2 * patience, [this] { return ending_ || said_; })) log_error(failure_);
}

/// Removes finished calls; false if a failure ended everything.
bool NcclWatchdog::look() {
  std::vector<ncclComm*> comms;
  {
    std::lock_guard guard(lock_);
    comms = comms_;
  }
  for (;;) {
    std::unique_lock guard(lock_);
    if (flights_.empty()) break;
    const Flight oldest = flights_.front();
    const cudaError_t state = cudaEventQuery(event_of(oldest.event));
    if (state == cudaSuccess) {
      events_.push_back(oldest.event);
      flights_.pop_front();
      recorder_.complete();
      continue;
    }
    guard.unlock();
    if (state != cudaErrorNotReady) return fail(text(oldest.words, ": ", cudaGetErrorString(state))), false;
    if (Clock::now() - oldest.begin > deadline_)
      return fail(text(oldest.words, " was not done within ", deadline_.count(), " s (comm.deadline_seconds)")), false;
    break;
  }
  std::string error;
  for (ncclComm* comm : comms) {
    ncclResult_t state = ncclSuccess;
    std::lock_guard nccl(nccl_lock_);
    {
      std::lock_guard guard(lock_);
      if (std::find(comms_.begin(), comms_.end(), comm) == comms_.end()) continue;  // retired in the meantime
    }
    if (ncclCommGetAsyncError(comm, &state) == ncclSuccess && state != ncclSuccess && state != ncclInProgress)
      error = text("NCCL: ", ncclGetErrorString(state), " (NCCL_DEBUG=WARN tells more)");
  }
  if (!error.empty()) fail(error);
  return error.empty();
}

/// Aborting ends the communicators' kernels, so that no thread waits for the device any more.
void NcclWatchdog::fail(const std::string& what) {
  std::vector<ncclComm*> comms;
  {
    std::lock_guard guard(lock_);
    if (!failure_.empty()) return;
    const std::string behind = recorder_.who_is_behind();
    must_ask_ = behind.empty();
    failure_ = text(what, behind.empty() ? "" : ": ", behind);
    comms.swap(comms_);
  }
  end_all(comms);
}

void NcclWatchdog::abandon() noexcept {
  std::vector<ncclComm*> comms;
  {
    std::lock_guard guard(lock_);
    if (!failure_.empty()) return;
    failure_ = "this rank has given up";
    said_ = true;  // the exception says more
    comms.swap(comms_);
  }
  end_all(comms);
}

void NcclWatchdog::end_all(const std::vector<ncclComm*>& comms) {
  std::lock_guard nccl(nccl_lock_);
  for (ncclComm* comm : comms) ncclCommAbort(comm);
}

}  // namespace zero
