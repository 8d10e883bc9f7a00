#pragma once
// BlockIo: transfers between an arena's blocks and files, several in flight. The implementations are io_uring, threads,
// and one that injects faults for tests.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace zero {

class HostArena;

struct Transfer {
  bool write = false;
  int descriptor = -1;
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::int64_t offset = 0;
  int block = 0;  // of the arena that contains `data`
};

struct Completion {
  std::uint64_t tag = 0;
  std::int64_t result = 0;  // bytes moved, possibly fewer than requested; or -errno
};

/// Only one thread uses it. The owner counts the transfers in flight and waits for all of them before it frees the
/// memory.
class BlockIo {
 public:
  virtual ~BlockIo() = default;
  virtual const char* name() const = 0;
  virtual void submit(std::uint64_t tag, const Transfer& transfer) = 0;
  virtual Completion wait_any() = 0;  // only while something is in flight
};

/// Uses io_uring, with the arena's blocks as fixed buffers if the limit on locked memory allows that. If the system
/// does not allow io_uring, or the program was built without it, sets `reason` and returns null.
std::unique_ptr<BlockIo> make_uring_io(const HostArena& arena, int depth, std::string* reason);

/// Uses pread and pwrite in threads.
std::unique_ptr<BlockIo> make_thread_io(int threads);

enum class BlockIoKind : std::uint8_t { automatic, uring, threads };

/// `automatic` uses io_uring. If that is not available, it logs one line and uses threads. `uring` throws Error instead
/// of falling back.
std::unique_ptr<BlockIo> make_block_io(BlockIoKind kind, const HostArena& arena);

}  // namespace zero
