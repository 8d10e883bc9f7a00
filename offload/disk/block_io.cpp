#include "offload/disk/block_io.h"

#include "base/error.h"
#include "base/log.h"
#include "offload/memory/host_arena.h"

namespace zero {

std::unique_ptr<BlockIo> make_block_io(BlockIoKind kind, const HostArena& arena) {
  if (kind == BlockIoKind::threads) return make_thread_io(2);
  std::string reason;
  if (auto io = make_uring_io(arena, 2 * arena.blocks(), &reason)) return io;
  if (kind == BlockIoKind::uring) throw Error(text("io_uring is not to be had: ", reason));
  log_warning("io_uring is not to be had (", reason,
              "): the disk tier takes pread and pwrite in threads, which is slower");
  return make_thread_io(2);
}

}  // namespace zero
