#pragma once
// Transfer: moves bytes to or from a file, in as many calls as necessary.
#include <cstdint>

#include "base/files/file_calls.h"

namespace zero {

/// The result of a transfer.
struct Transfer {
  std::int64_t moved = 0;
  int reason = 0;  // errno of the call that failed; 0: none did
};

/// Writes `bytes` from `offset` on, and retries calls that a signal interrupts. If a call writes only a part, the next
/// one starts at the last multiple of `block`: direct writes are whole blocks. A call that moves less than a block
/// means no room (ENOSPC), one that moves nothing a fault (EIO).
Transfer write_all(FileCalls& calls, int file, const void* from, std::int64_t bytes, std::int64_t offset,
                   std::int64_t block = 1);

/// Reads `bytes` from `offset` on. Fewer bytes without a reason mean the end of the file. A call that fails for a
/// transient reason is retried (base/files/lookup.h).
Transfer read_all(FileCalls& calls, int file, void* to, std::int64_t bytes, std::int64_t offset);

}  // namespace zero
