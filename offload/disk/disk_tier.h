#pragma once
// DiskTier: a ring of buffers through which optimizer states travel from and to the disk. It needs memory for only a
// few chunks, whatever the size of the shards. Reading ahead, updating and writing back overlap.
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "offload/disk/block_io.h"
#include "offload/disk/disk_directory.h"
#include "offload/disk/disk_queue.h"
#include "offload/memory/host_arena.h"
#include "offload/state_store.h"

namespace zero {

struct DiskTierOptions {
  std::string directory;  // offload.nvme_dir
  int rank = 0;
  std::size_t chunk_bytes = std::size_t{16} << 20;  // of all states of a chunk together
  int buffers = 4;  // at least 3: one is updated while others are read ahead or written back
  BlockIoKind io = BlockIoKind::automatic;
  std::int64_t memory_bytes() const { return buffers * std::int64_t(chunk_bytes); }

  bool checksums = true;                                                   // throws if a chunk reads back changed
  std::function<std::unique_ptr<BlockIo>(std::unique_ptr<BlockIo>)> wrap;  // injects faults in tests
};

/// The size in bytes of the file that make_store() creates.
std::int64_t disk_state_bytes(const DiskTierOptions& options, std::int64_t elements,
                              const std::vector<StateSpec>& states);

/// Only the rank's own thread uses it. Stores keep their tier alive.
class DiskTier : public std::enable_shared_from_this<DiskTier> {
 public:
  static std::shared_ptr<DiskTier> create(const DiskTierOptions& options);

  /// Makes a store of `elements` elements, all zeros, in a file of its own. Throws Error if the disk is full.
  std::unique_ptr<StateStore> make_store(const std::string& name, std::int64_t elements,
                                         const std::vector<StateSpec>& states);

  const DiskDirectory& directory() const { return directory_; }
  const char* io_name() const { return queue_.name(); }
  bool checksums() const { return options_.checksums; }
  std::size_t buffer_bytes() const { return arena_.block_bytes(); }

  std::byte* data(int buffer) const { return arena_.block(buffer); }
  /// Takes a free buffer. If `wait` is set, may wait for the oldest write-back. Otherwise may return nothing, because
  /// two buffers are reserved for a visit's current chunk and next chunk.
  std::optional<int> take(bool wait);
  void give(int buffer) { idle_.push_back(buffer); }
  DiskQueue::Ticket read(const DiskFile& file, std::int64_t offset, int buffer, std::size_t bytes);
  void wait(DiskQueue::Ticket ticket) { queue_.wait(ticket); }
  /// Writes the buffer to the file and then frees it. If the write fails, a later take() or settle() throws the Error.
  void write_back(const DiskFile& file, std::int64_t offset, int buffer, std::size_t bytes);
  /// Waits until all write-backs to this file are done.
  void settle(const DiskFile& file);

 private:
  explicit DiskTier(const DiskTierOptions& options);

  struct WriteBack {
    DiskQueue::Ticket ticket;
    const DiskFile* file;
    int buffer;
  };
  void finish(std::list<WriteBack>::iterator write);

  DiskTierOptions options_;
  DiskDirectory directory_;
  HostArena arena_;
  DiskQueue queue_;
  std::list<int> idle_;
  std::list<WriteBack> writes_;
};

}  // namespace zero
