#include "base/files/transfer.h"

#include <cerrno>

#include "base/files/lookup.h"

namespace zero {

Transfer write_all(FileCalls& calls, int file, const void* from, std::int64_t bytes, std::int64_t offset,
                   std::int64_t block) {
  const auto* data = static_cast<const std::byte*>(from);
  std::int64_t done = 0;
  while (done < bytes) {
    const ssize_t moved = calls.write(file, data + done, static_cast<std::size_t>(bytes - done), offset + done);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) return {done, errno};
    const std::int64_t whole = moved / block * block;
    if (whole == 0) return {done, moved == 0 ? EIO : ENOSPC};
    done += whole;
  }
  return {done};
}

Transfer read_all(FileCalls& calls, int file, void* to, std::int64_t bytes, std::int64_t offset) {
  auto* data = static_cast<std::byte*>(to);
  std::int64_t done = 0;
  while (done < bytes) {
    const ssize_t moved = patiently(
        calls, [&] { return calls.read(file, data + done, static_cast<std::size_t>(bytes - done), offset + done); });
    if (moved < 0) return {done, errno};
    if (moved == 0) break;
    done += moved;
  }
  return {done};
}

}  // namespace zero
