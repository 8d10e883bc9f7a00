#pragma once
// An emulated GPU for machines without one: CUDA's runtime, cuBLASLt, NCCL, and LibTorch's operations on CUDA tensors,
// in host memory. If a program of the cuda preset links this library first, its unchanged GPU path runs, including
// kernels (kernel_host.h). The program sees devices of compute capability 9.0.
//
// Work is queued per stream and runs as late as possible, only when the host waits for it or queries it. A seed then
// selects one of the orders that events allow. A missing dependency between two pieces of work therefore shows often,
// and repeatably. While no work runs, the device's memory cannot be read or written. If host code touches it, the
// process ends with a message. The emulation reproduces results, order and errors. It does not reproduce speed, or
// anything that only hardware does.
//
// Environment: ZERO_EMULATED_GPUS (default 4), ZERO_EMULATED_SEED (0), ZERO_EMULATED_NCCL (the version that it reports,
// 22809), ZERO_EMULATED_VERBOSE (1: names the operations for which the host waits).
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <vector>

namespace zero::emulated {

/// One piece of work. It begins when it is first in its stream and `ready` returns true (empty: always).
struct Task {
  std::function<void()> run;
  std::function<bool()> ready;
};

/// A point in a stream, recorded any number of times. The latest recording is passed when `passed` has reached
/// `recorded`.
struct Mark {
  std::uint64_t recorded = 0, passed = 0;
  double seconds = 0;  // time at which it was passed, on the device's clock
};

/// While it lives, makes the device's memory accessible, for work on the device. Only the holder of the scheduler's
/// lock may make one.
class DeviceAccess {
 public:
  DeviceAccess();
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;
};

/// All emulated devices of the process: their streams share one scheduler. Thread-safe.
class Scheduler {
 public:
  static Scheduler& get();

  void enqueue(cudaStream_t stream, Task task);
  void record(const std::shared_ptr<Mark>& mark, cudaStream_t stream);
  /// Returns false if CUDA does not allow the wait: a captured stream may not wait for work that is not captured.
  bool wait(cudaStream_t stream, const std::shared_ptr<Mark>& mark);
  /// Runs work, including that of other streams, until the stream is empty or the mark is passed.
  void synchronize(cudaStream_t stream);
  void synchronize(const Mark& mark);
  void synchronize();
  /// Runs some work, if there is any. Returns whether the stream is empty.
  bool query(cudaStream_t stream);
  bool query(const Mark& mark);

  /// From now on, records the tasks of the stream, and of streams that wait for its marks, instead of running them.
  void begin_capture(cudaStream_t stream);
  std::vector<Task> end_capture(cudaStream_t stream);
  bool captures(cudaStream_t stream);

  /// Sets the duration of the running task, on the device's own clock, whose times are the same in every run. Other
  /// tasks take a microsecond.
  void take(double seconds);

  /// Waits until the stream is empty. Then the host itself runs `work` on the device's memory.
  void run_now(cudaStream_t stream, const std::function<void()>& work);

 private:
  Scheduler();
  bool step(std::optional<DeviceAccess>& access);
  template <class Done>
  void run_until(Done done);

  std::recursive_mutex lock_;
  std::map<cudaStream_t, std::deque<Task>> streams_;
  using Captured = std::shared_ptr<std::vector<Task>>;  // the tasks of all streams of one capture, in call order
  std::map<cudaStream_t, Captured> captured_;
  std::map<const Mark*, Captured> captured_marks_;
  std::mt19937_64 random_;
  std::size_t waiting_ = 0;
  double clock_ = 0;  // seconds
};

/// The kind of a range of memory that the device made or registered.
enum class Place { pageable, pinned, device };

class MemoryMap {
 public:
  static MemoryMap& get();

  /// Returns memory filled with NaN, 512-byte aligned; null if there is not enough.
  void* allocate(std::size_t bytes, Place place);
  void release(void* begin);
  void enrol(void* begin, std::size_t bytes);
  void forget(void* begin);
  Place place_of(const void* address);
  /// Ends the process if [begin, begin + bytes) is not inside one range of device memory.
  void check_device(const void* begin, std::size_t bytes, const char* what);
  /// Makes the device's memory accessible to the whole process, or to nobody.
  void set_access(bool open);
  /// Returns the size of the device memory range around an address; 0 for other memory. Takes no lock, so that a
  /// SIGSEGV handler may call it.
  std::size_t device_range_around(const void* address);
  std::size_t free_bytes();
  static std::size_t total_bytes();

 private:
  struct Range {
    std::size_t bytes;
    Place place;
    bool own;
  };
  std::map<const char*, Range>::iterator find(const void* address);

  std::mutex lock_;
  std::map<const char*, Range> ranges_;
  std::size_t used_ = 0;
  bool open_ = false;
};

/// Ends the process with a message that names the missing function and its caller.
[[noreturn]] void not_emulated(const char* what);

std::int64_t environment(const char* name, std::int64_t otherwise);

}  // namespace zero::emulated
