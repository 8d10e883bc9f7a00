#include "zero/doctor/storage.h"

#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <iomanip>

#include "base/byte_count.h"
#include "base/error.h"
#include "base/files/free_space.h"
#include "base/files/scratch_folder.h"
#include "base/log.h"
#include "comm/shared_segment.h"
#include "offload/disk/block_io.h"
#include "offload/disk/disk_directory.h"
#include "offload/disk/disk_file.h"
#include "offload/disk/disk_queue.h"
#include "offload/memory/host_arena.h"

namespace zero {
namespace {

constexpr std::size_t block_bytes = std::size_t(8) << 20;
constexpr int in_flight = 4;

/// Moves the whole file, several blocks at a time. Returns bytes per second.
double speed_of(bool write, DiskQueue& queue, const DiskFile& file, const HostArena& arena) {
  const auto begin = std::chrono::steady_clock::now();
  std::deque<DiskQueue::Ticket> tickets;
  int block = 0;
  for (std::int64_t offset = 0; offset < file.bytes(); offset += std::int64_t(block_bytes)) {
    if (int(tickets.size()) == in_flight) {
      queue.wait(tickets.front());
      tickets.pop_front();
    }
    tickets.push_back(queue.start(write, file, offset, arena.block(block), block_bytes, block));
    block = (block + 1) % in_flight;
  }
  for (const DiskQueue::Ticket ticket : tickets) queue.wait(ticket);
  if (write && ::fdatasync(file.descriptor()) != 0) throw Error(text("fdatasync: ", std::strerror(errno)));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  return double(file.bytes()) / std::max(1e-9, seconds.count());
}

std::string gigabytes(double bytes_per_second) {
  return text(std::fixed, std::setprecision(2), bytes_per_second / 1e9, " GB/s");
}

Finding measured_disk(const std::string& folder, std::int64_t bytes, std::int64_t room) {
  const HostArena arena(in_flight, block_bytes, MemoryCategory::buffers);
  std::string reason;
  std::unique_ptr<BlockIo> io = make_uring_io(arena, 2 * in_flight, &reason);
  DiskQueue queue(io ? std::move(io) : make_thread_io(2));
  const ScratchFolder trial("doctor", {.place = folder, .remedy = "name a folder where you may write"});
  const DiskDirectory directory(trial.path(), 0);
  const DiskFile file(directory, "trial", bytes);
  const double written = speed_of(true, queue, file, arena), read = speed_of(false, queue, file, arena);
  const std::string words = text(folder, ": writes ", gigabytes(written), ", reads ", gigabytes(read),
                                 file.direct() ? " (direct I/O, " : " (through the page cache, ", bytes_text(bytes),
                                 "), ", bytes_text(room), " free");
  if (!file.direct())
    return {"disk", Verdict::warning, words,
            "this file system has no direct I/O: put offload.nvme_dir on ext4, XFS or Btrfs of a local disk"};
  return {"disk", Verdict::ok, words, ""};
}

}  // namespace

Finding examine_shared_memory() {
  const char* const place = "/dev/shm";
  constexpr std::int64_t little = std::int64_t(1) << 30, trial = std::int64_t(1) << 20;
  struct statvfs system {};
  if (::statvfs(place, &system) != 0)
    return {"shared memory", Verdict::unknown, text(place, ": ", std::strerror(errno)),
            "mount a tmpfs on /dev/shm; without it the ranks of a node send messages, which is slower"};
  const auto bytes_of = [&](auto blocks) { return std::int64_t(blocks) * std::int64_t(system.f_frsize); };
  const std::int64_t free = bytes_of(system.f_bavail);
  const std::string words = text(place, ": ", bytes_text(bytes_of(system.f_blocks)), ", ", bytes_text(free), " free");
  try {
    SharedSegment::create(trial);
  } catch (const Error& error) {
    return {"shared memory", Verdict::warning, words + "; " + error.what(),
            "until then the ranks of a node send messages, which is slower"};
  }
  if (free < little)
    return {"shared memory", Verdict::warning, words,
            "a container gets more by --shm-size=4g; runs that find too little send messages, which is slower"};
  return {"shared memory", Verdict::ok, words + ", writable", ""};
}

Finding examine_io_uring() {
  try {
    const HostArena arena(in_flight, block_bytes, MemoryCategory::buffers);
    std::string reason;
    if (const auto io = make_uring_io(arena, 2 * in_flight, &reason)) return {"io_uring", Verdict::ok, io->name(), ""};
    return {
        "io_uring", Verdict::warning, reason,
        "offload to nvme uses threads instead, which is slower; a container needs a seccomp profile that allows it"};
  } catch (const Error& error) {
    return {"io_uring", Verdict::unknown, error.what(), "free some memory, and ask again"};
  }
}

Finding examine_disk(const std::string& folder, std::int64_t bytes) {
  const std::int64_t room = free_disk_bytes(folder);
  if (room < 0)
    return {"disk", Verdict::unknown, text(folder, ": the system does not say how much room there is"),
            "name another folder by --folder"};
  const std::int64_t trial = std::min(bytes, room / 10) / std::int64_t(block_bytes) * std::int64_t(block_bytes);
  if (trial == 0)
    return {"disk", Verdict::warning, text(folder, ": ", bytes_text(room), " free, too little to measure its speed"),
            "free some room, or name another folder by --folder; checkpoints need 12 bytes per parameter and more"};
  try {
    return measured_disk(folder, trial, room);
  } catch (const Error& error) {
    return {"disk", Verdict::unknown, text(folder, ": ", error.what()),
            "name a folder by --folder that this user may write to"};
  }
}

}  // namespace zero
