#pragma once
// Transfer: bytes on their way to or from a file, in as many calls as it takes.
#include <cstdint>

#include "base/files/file_calls.h"

namespace zero {

/// What became of them.
struct Transfer {
  std::int64_t moved = 0;
  int reason = 0;  // errno of the call that failed; 0: none did
};

/// Writes `bytes` from `offset` on. A call that a signal interrupts is made again, and what a call leaves over is left
/// to the next, from the last begin of a `block` on: direct writes are whole blocks. A call that moves less than a
/// block has found no room (ENOSPC), one that moves nothing a fault (EIO).
Transfer write_all(FileCalls& calls, int file, const void* from, std::int64_t bytes, std::int64_t offset,
                   std::int64_t block = 1);

/// Reads `bytes` from `offset` on. Fewer, without a reason: the file ends there. A call that fails for a reason that may
/// pass is made again (base/files/lookup.h).
Transfer read_all(FileCalls& calls, int file, void* to, std::int64_t bytes, std::int64_t offset);

}  // namespace zero
