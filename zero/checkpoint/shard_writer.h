#pragma once
// ShardWriter: writes one rank's shard file from its chunks (zero/checkpoint/shard_packer.h). Holds the table.
#include <cstdint>
#include <string>
#include <vector>

#include "base/files/durable_file.h"
#include "offload/memory/host_arena.h"
#include "zero/checkpoint/shard_format.h"

namespace zero {

/// The manifest's record of a file: its size and checksum.
struct FileMark {
  std::int64_t bytes = 0;
  std::uint64_t checksum = 0;  // of the table of chunks

  bool operator==(const FileMark&) const = default;
};

class ShardWriter {
 public:
  /// The format must outlive the writer. Members throw Error that names the path and a remedy.
  ShardWriter(FileCalls& calls, const std::string& path, const ShardFormat& format);

  /// Writes the next chunk, 4096-aligned in memory.
  void append(const ShardChunk& chunk, const std::byte* from);
  /// Call after the last chunk: writes the table and syncs the file.
  FileMark finish();

 private:
  const ShardFormat& format_;
  DurableFile file_;
  HostArena table_;
  std::int64_t chunks_ = 0;  // written
};

}  // namespace zero
