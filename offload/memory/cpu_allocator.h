#pragma once
// CpuAllocator: the allocator of every CPU tensor. It pools blocks, so that a training step runs without page faults.
// It counts bytes, so that the tracker knows the purpose of each. It keeps the memory of the process close to the bytes
// in use.
#include <c10/core/Allocator.h>

#include <cstddef>
#include <memory>

#include "offload/memory/page_arena.h"

namespace zero {

struct CpuAllocatorOptions {
  bool poison = false;  // fill new and freed blocks with 0xFF, which is NaN in every floating type
  PageArenaOptions arena;
};

/// Blocks are 64-byte aligned and not zeroed. Their bytes, rounded up to 64, are counted in the tracker and category of
/// the allocating thread's scopes until any thread frees them. Thread-safe. allocate(0) returns a null pointer. If no
/// memory is left, throws Error with the pool's state.
class CpuAllocator final : public c10::Allocator {
 public:
  explicit CpuAllocator(const CpuAllocatorOptions& options = {});
  /// Restores the previous allocator. Live blocks stay valid: the pool is freed with the last of them.
  ~CpuAllocator() override;
  CpuAllocator(const CpuAllocator&) = delete;
  CpuAllocator& operator=(const CpuAllocator&) = delete;

  /// Makes this LibTorch's CPU allocator until it is destroyed. Call it in main(), before the first tensor is made.
  /// Older blocks keep their own deleters.
  void install();

  c10::DataPtr allocate(std::size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* destination, const void* source, std::size_t bytes) const override;

  /// Returns pages without a live block to the system. Returns the number of bytes released.
  std::size_t trim();
  std::size_t live_bytes() const;    // handed out, rounded up to 64
  std::size_t pooled_bytes() const;  // resident beyond the live bytes: free blocks, rounding, headers

  struct State;

 private:
  std::unique_ptr<State> state_;
  c10::Allocator* before_ = nullptr;
};

}  // namespace zero
