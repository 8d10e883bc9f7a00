#pragma once
// Memory that NCCL can use without copies: from ncclMemAlloc, registered with one communicator, at the same offsets on all
// ranks since all allocate alike.
#include <ATen/core/Tensor.h>

#include <memory>

#include "comm/nccl_watchdog.h"

namespace zero {

/// One communicator of NCCL and what is registered with it. Shared by the tensors that live in its memory.
class NcclGroup {
 public:
  /// Takes the handle over.
  NcclGroup(std::shared_ptr<NcclWatchdog> watchdog, ncclComm* comm, int device, int ranks);
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  ncclComm* comm() const { return comm_; }
  NcclWatchdog& watchdog() const { return *watchdog_; }
  std::int64_t bytes() const { return bytes_; }

  /// Zeroed bytes on the device; registered as a symmetric window where the library has them, else as a plain buffer.
  /// Collective. The tensor keeps the group alive.
  static at::Tensor allocate(const std::shared_ptr<NcclGroup>& group, std::int64_t numel, at::ScalarType type);

 private:
  enum class Registration { none, buffer, window };
  struct Block {
    void* memory = nullptr;
    void* handle = nullptr;
    std::int64_t bytes = 0;
    Registration registration = Registration::none;
  };
  Block take(std::size_t bytes);
  void give_back(const Block& block);
  void log_registration(Registration registration, std::size_t bytes);

  std::shared_ptr<NcclWatchdog> watchdog_;
  ncclComm* comm_;
  int device_;
  int ranks_;
  bool logged_ = false;
  std::int64_t bytes_ = 0;
};

}  // namespace zero
