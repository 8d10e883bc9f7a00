#pragma once
// Memory that NCCL uses without copies. An arena is one block from ncclMemAlloc, registered once with one communicator.
// It holds all buffers of that communicator's collectives, at the same offsets on all ranks.
#include <ATen/core/Tensor.h>

#include <memory>

#include "comm/nccl/arena_map.h"
#include "comm/nccl/nccl_watchdog.h"

namespace zero {

/// One NCCL communicator, shared by the arenas that are registered with it.
class NcclGroup {
 public:
  /// Takes ownership of the handle, which the watchdog watches.
  NcclGroup(std::shared_ptr<NcclWatchdog> watchdog, ncclComm* comm, int device)
      : watchdog_(std::move(watchdog)), comm_(comm), device_(device) {}
  ~NcclGroup() { watchdog_->retire(comm_); }
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  ncclComm* comm() const { return comm_; }
  NcclWatchdog& watchdog() const { return *watchdog_; }
  int device() const { return device_; }

 private:
  std::shared_ptr<NcclWatchdog> watchdog_;
  ncclComm* comm_;
  int device_;
};

class NcclArena : public std::enable_shared_from_this<NcclArena> {
 public:
  /// Allocates zeroed memory on the group's device. Registers it as a window (symmetric) if each rank can reach the
  /// others' memory, otherwise as a plain buffer. Waits for the device. Collective.
  NcclArena(std::shared_ptr<NcclGroup> group, std::int64_t bytes);
  /// Waits for the device. After a failure, or during an exception, the memory is kept until the process ends.
  ~NcclArena();
  NcclArena(const NcclArena&) = delete;
  NcclArena& operator=(const NcclArena&) = delete;

  /// A flat tensor at the lowest free offset. The tensor keeps the arena alive. Returns an undefined tensor if there is
  /// no room.
  at::Tensor take(std::int64_t numel, at::ScalarType type);

  std::int64_t bytes() const { return map_.bytes(); }
  /// "as a window", "as a buffer" or "not".
  const char* registration() const;

 private:
  enum class Registration { none, buffer, window };
  void enrol();

  std::shared_ptr<NcclGroup> group_;
  ArenaMap map_;
  void* memory_ = nullptr;
  void* handle_ = nullptr;
  Registration registration_ = Registration::none;
};

}  // namespace zero
