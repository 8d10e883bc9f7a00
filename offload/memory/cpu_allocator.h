#pragma once
// CpuAllocator: the one allocator behind every CPU tensor. It pools, so that a training step runs without page faults.
// It counts, so that the tracker knows the purpose of every byte. It keeps the pages of the process close to the bytes
// in use.
#include <c10/core/Allocator.h>

#include <cstddef>
#include <memory>

#include "offload/memory/page_arena.h"

namespace zero {

struct CpuAllocatorOptions {
  bool poison = false;  // fill fresh and freed blocks with 0xFF: NaN in every floating type
  PageArenaOptions arena;
};

/// Blocks are 64-byte aligned. Their bytes, rounded up to 64, are booked in the tracker and category of the allocating
/// thread's scopes, and released there, whichever thread frees them. Not zero-filled. Thread-safe. allocate(0) is a
/// null pointer. Throws Error, with the pool's state, if no memory is left.
class CpuAllocator final : public c10::Allocator {
 public:
  explicit CpuAllocator(const CpuAllocatorOptions& options = {});
  /// Restores the previous allocator. Live blocks stay valid: the pool ends with the last of them.
  ~CpuAllocator() override;
  CpuAllocator(const CpuAllocator&) = delete;
  CpuAllocator& operator=(const CpuAllocator&) = delete;

  /// Becomes LibTorch's CPU allocator until destroyed. Call it in main, before the first tensor. Older blocks keep
  /// their own deleters.
  void install();

  c10::DataPtr allocate(std::size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* destination, const void* source, std::size_t bytes) const override;

  /// Releases pages without a live block to the system. Returns their bytes.
  std::size_t trim();
  std::size_t live_bytes() const;    // handed out, rounded up to 64
  std::size_t pooled_bytes() const;  // pages beyond the live bytes: free blocks, rounding, headers

  struct State;

 private:
  std::unique_ptr<State> state_;
  c10::Allocator* before_ = nullptr;
};

}  // namespace zero
