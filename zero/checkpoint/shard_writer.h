#pragma once
// ShardWriter: one rank's shard file, from its chunks (zero/checkpoint/shard_packer.h). Holds the table.
#include <cstdint>
#include <string>
#include <vector>

#include "base/files/durable_file.h"
#include "offload/memory/host_arena.h"
#include "zero/checkpoint/shard_format.h"

namespace zero {

/// What a manifest tells of a file's content.
struct FileMark {
  std::int64_t bytes = 0;
  std::uint64_t checksum = 0;  // of the table of chunks

  bool operator==(const FileMark&) const = default;
};

class ShardWriter {
 public:
  /// The format outlives the writer. Error, with path and remedy, from every member.
  ShardWriter(FileCalls& calls, const std::string& path, const ShardFormat& format);

  /// The next chunk, 4096-aligned in memory.
  void append(const ShardChunk& chunk, const std::byte* from);
  /// After the last one: writes the table and syncs the file.
  FileMark finish();

 private:
  const ShardFormat& format_;
  DurableFile file_;
  HostArena table_;
  std::int64_t chunks_ = 0;  // written
};

}  // namespace zero
