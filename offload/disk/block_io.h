#pragma once
// BlockIo: transfers between an arena's blocks and files, several in flight. Implementations are io_uring, threads, and
// a test's faults.
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

/// Used by one thread. Its owner counts the transfers in flight and waits for all of them before it frees the memory.
class BlockIo {
 public:
  virtual ~BlockIo() = default;
  virtual const char* name() const = 0;
  virtual void submit(std::uint64_t tag, const Transfer& transfer) = 0;
  virtual Completion wait_any() = 0;  // only while something is in flight
};

/// io_uring, with the arena's blocks as fixed buffers if the limit on locked memory allows it. Null, with the reason,
/// if the system does not allow io_uring or the program was built without it.
std::unique_ptr<BlockIo> make_uring_io(const HostArena& arena, int depth, std::string* reason);

/// Uses pread and pwrite in threads.
std::unique_ptr<BlockIo> make_thread_io(int threads);

enum class BlockIoKind : std::uint8_t { automatic, uring, threads };

/// `automatic` uses io_uring, or threads with one line in the log. `uring` throws Error instead of that fallback.
std::unique_ptr<BlockIo> make_block_io(BlockIoKind kind, const HostArena& arena);

}  // namespace zero
