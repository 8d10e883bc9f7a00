#pragma once
// DiskQueue: completes transfers that the system may split. It checks every completion's byte count and requests
// missing bytes again. If a file ends too soon or a transfer fails, it throws an Error that names the file.
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "offload/disk/block_io.h"
#include "offload/disk/disk_file.h"

namespace zero {

/// Only one thread uses it.
class DiskQueue {
 public:
  using Ticket = std::uint64_t;

  explicit DiskQueue(std::unique_ptr<BlockIo> io) : io_(std::move(io)) {}
  ~DiskQueue();  // waits for everything in flight: the system may still be using the memory
  DiskQueue(const DiskQueue&) = delete;
  DiskQueue& operator=(const DiskQueue&) = delete;

  const char* name() const { return io_->name(); }

  /// Starts to move `bytes` between a block and the file. Address, offset and size must be multiples of
  /// DiskFile::block.
  Ticket start(bool write, const DiskFile& file, std::int64_t offset, std::byte* data, std::size_t bytes, int block);

  /// Returns when all bytes of the transfer have moved. Throws Error if it failed. Call once per ticket.
  void wait(Ticket ticket);

 private:
  struct Pending {
    Transfer transfer;  // the missing part
    std::string path;
    std::string failure;  // empty if none
    bool done = false;
  };

  void submit(Ticket ticket, const Pending& pending);
  void take_completion();

  std::unique_ptr<BlockIo> io_;
  std::map<Ticket, Pending> pending_;
  Ticket next_ = 1;
  int in_flight_ = 0;
};

}  // namespace zero
