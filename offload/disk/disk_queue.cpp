#include "offload/disk/disk_queue.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/activity_clock.h"
#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

constexpr std::size_t largest_transfer = std::size_t{256} << 20;  // the system's limit is just under 2^31

}  // namespace

DiskQueue::~DiskQueue() {
  try {
    while (in_flight_ > 0) take_completion();
  } catch (const std::exception& error) {
    log_error("disk queue: ", error.what());
  }
}

DiskQueue::Ticket DiskQueue::start(bool write, const DiskFile& file, std::int64_t offset, std::byte* data,
                                   std::size_t bytes, int block) {
  ZERO_CHECK(offset % DiskFile::block == 0 && bytes % DiskFile::block == 0 && bytes > 0 &&
                 offset + static_cast<std::int64_t>(bytes) <= file.bytes(),
             text("transfer of ", bytes, " bytes at ", offset, " of ", file.path()));
  const ActivityScope scope({Activity::disk, write ? "write" : "read", nullptr, -1, std::int64_t(bytes)});
  const Ticket ticket = next_++;
  const Pending& pending =
      pending_.emplace(ticket, Pending{{write, file.descriptor(), data, bytes, offset, block}, file.path(), {}, false})
          .first->second;
  submit(ticket, pending);
  return ticket;
}

void DiskQueue::submit(Ticket ticket, const Pending& pending) {
  Transfer part = pending.transfer;
  part.bytes = std::min(part.bytes, largest_transfer);
  io_->submit(ticket, part);
  ++in_flight_;
}

void DiskQueue::take_completion() {
  const Completion completion = io_->wait_any();
  --in_flight_;
  const auto found = pending_.find(completion.tag);
  ZERO_CHECK(found != pending_.end(), "a completion that nobody asked for");
  Pending& pending = found->second;
  Transfer& rest = pending.transfer;
  const char* what = rest.write ? "writing " : "reading ";
  if (completion.result == -EINTR || completion.result == -EAGAIN) return submit(found->first, pending);
  if (completion.result < 0) {
    pending.failure = text(
        what, pending.path, " failed at byte ", rest.offset, ": ", std::strerror(static_cast<int>(-completion.result)),
        completion.result == -ENOSPC ? "; free some space" : "", "; resume from the last checkpoint");
  } else {
    // Direct transfers resume at a block boundary, so part of a block is transferred again.
    auto moved = static_cast<std::size_t>(completion.result);
    if (moved < rest.bytes) moved = moved / DiskFile::block * DiskFile::block;
    rest.data += moved;
    rest.offset += static_cast<std::int64_t>(moved);
    rest.bytes -= moved;
    if (rest.bytes > 0 && moved > 0) return submit(found->first, pending);
    if (rest.bytes > 0) {
      pending.failure = text(what, pending.path, " stopped at byte ", rest.offset, ", ", rest.bytes,
                             " bytes short: the file was cut while in use; resume from the last checkpoint");
    }
  }
  pending.done = true;
}

void DiskQueue::wait(Ticket ticket) {
  const ActivityScope scope(Activity::disk);
  const auto found = pending_.find(ticket);
  ZERO_CHECK(found != pending_.end(), "waiting for a transfer that is none");
  while (!found->second.done) take_completion();
  const std::string failure = std::move(found->second.failure);
  pending_.erase(found);
  if (!failure.empty()) throw Error(failure);
}

}  // namespace zero
